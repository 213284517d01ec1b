package report

import (
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// A namespace may have eventsBurst events, and one more each eventEvery: client-go remembers each one for up to twelve minutes.
const (
	eventsBurst = 1_000
	eventEvery  = time.Second
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

// Limited drops what is more than a namespace may have. Each event is about another version of an object whose status changes all
// the time, so that client-go takes no two of them for one.
func Limited(to events.EventRecorder) events.EventRecorder {
	return &limitedRecorder{to, &byNamespace[*rate.Limiter]{
		begin:  func() *rate.Limiter { return rate.NewLimiter(rate.Every(eventEvery), eventsBurst) },
		isIdle: func(limiter *rate.Limiter) bool { return limiter.Tokens() >= eventsBurst },
	}}
}

type limitedRecorder struct {
	events.EventRecorder

	limiters *byNamespace[*rate.Limiter]
}

// Eventf sends an event if its namespace may have one more.
func (l *limitedRecorder) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...any) {
	var namespace string

	switch of := about.(type) {
	case *corev1.ObjectReference:
		namespace = of.Namespace
	case metav1.Object:
		namespace = of.GetNamespace()
	}

	if l.limiters.in(namespace).Allow() {
		l.EventRecorder.Eventf(about, related, kind, reason, action, note, args...)
	}
}
