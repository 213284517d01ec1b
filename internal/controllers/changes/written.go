package changes

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Written remembers the newest version of each resource that Ambit wrote itself. A plan made from an older one would report
// the same news a second time. Losing this memory costs an event that says it twice, and nothing else.
type Written struct {
	mu       sync.Mutex
	versions map[resourceID]uint64
}

type resourceID struct {
	namespace string
	uid       types.UID
}

func idOf(o client.Object) resourceID { return resourceID{o.GetNamespace(), o.GetUID()} }

// Note takes in what a write returned.
func (w *Written) Note(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil {
		w.versions = map[resourceID]uint64{}
	}

	w.versions[idOf(o)] = scope.ParseVersion(o.GetResourceVersion())
}

// Keep forgets the resources of a namespace that are no longer there.
func (w *Written) Keep(namespace string, there []client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()

	maps.DeleteFunc(w.versions, func(id resourceID, _ uint64) bool {
		return id.namespace == namespace && !slices.ContainsFunc(there, func(o client.Object) bool {
			return o.GetUID() == id.uid
		})
	})
}

// Ahead says whether one of the resources is older than what Ambit wrote last.
func (w *Written) Ahead(resources []client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, o := range resources {
		if scope.ParseVersion(o.GetResourceVersion()) < w.versions[idOf(o)] {
			return true
		}
	}

	return false
}
