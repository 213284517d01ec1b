package report

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// maxNote is how many bytes the API server takes as the note of an event (NoteLengthLimit in
// k8s.io/kubernetes/pkg/apis/core/validation/events.go). It refuses an event with a longer one, and nobody would learn of it.
const maxNote = 1024

// Send sends the event about an object: with as much of its message, escaped, as there is room for. What it names may have a name
// of any length, with anything in it.
func (e *Event) Send(to events.EventRecorder, about runtime.Object) {
	var related runtime.Object
	if e.Related != nil {
		related = e.Related
	}

	to.Eventf(about, related, e.Type(), e.Reason, e.Action, "%s", shortened(printable.Text(e.Message), maxNote))
}
