package changes

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// CacheWait is how long a plan waits for the cache to report a write of Ambit's own. A cache reports the resources of all
// namespaces one after the other, so whoever fills their own namespace with large ones decides how long everybody else would
// wait.
const CacheWait = 300 * time.Millisecond

// Written remembers the newest version of each resource that Ambit wrote itself, until the cache reports it. A plan made from an
// older one would report the same news a second time. Losing this memory costs a duplicate event, and nothing else.
type Written struct {
	mu     sync.Mutex
	writes map[resourceID]write
}

type write struct {
	version uint64
	at      time.Time
	// object is what the API server answered, where that is remembered.
	object client.Object
}

type resourceID struct {
	namespace string
	uid       types.UID
}

func idOf(o client.Object) resourceID { return resourceID{o.GetNamespace(), o.GetUID()} }

// Note records which version a write returned.
func (w *Written) Note(o client.Object) { w.note(o, nil) }

// Remember records what a write returned, whole, so that no plan has to wait until the cache reports it: see [Newest].
func (w *Written) Remember(o client.Object) {
	object, _ := o.DeepCopyObject().(client.Object) // A copy has the type of its original.
	w.note(o, object)
}

func (w *Written) note(o, object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.writes == nil {
		w.writes = map[resourceID]write{}
	}

	w.writes[idOf(o)] = write{scope.ParseVersion(o.GetResourceVersion()), time.Now(), object}
}

// Keep gets all resources of a namespace that the cache has. It forgets the writes to those that are no longer there, and those
// that the cache has reported.
func (w *Written) Keep(namespace string, there []client.Object) {
	versions := make(map[resourceID]uint64, len(there))
	for _, o := range there {
		versions[idOf(o)] = scope.ParseVersion(o.GetResourceVersion())
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	maps.DeleteFunc(w.writes, func(id resourceID, last write) bool {
		version, is := versions[id]

		return id.namespace == namespace && (!is || version >= last.version)
	})
}

// Newest is the resource as Ambit wrote it last, where the cache has yet to report that; otherwise o, from the cache. It is not
// to be changed.
func Newest[T client.Object](w *Written, o T) T {
	w.mu.Lock()
	defer w.mu.Unlock()

	if last := w.writes[idOf(o)]; scope.ParseVersion(o.GetResourceVersion()) < last.version {
		if object, is := last.object.(T); is {
			return object
		}
	}

	return o
}

// Wait is how long a plan of these resources is to wait for the cache, which may report the writes sooner. It is zero once all
// are as new as what Ambit wrote, or CacheWait is over.
func (w *Written) Wait(resources []client.Object) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()

	var wait time.Duration

	for _, o := range resources {
		if last := w.writes[idOf(o)]; scope.ParseVersion(o.GetResourceVersion()) < last.version {
			wait = max(wait, CacheWait-time.Since(last.at))
		}
	}

	return wait
}

// IsAhead says whether a resource is older than what Ambit wrote last.
func (w *Written) IsAhead(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return scope.ParseVersion(o.GetResourceVersion()) < w.writes[idOf(o)].version
}
