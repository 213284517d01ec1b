package home

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// written remembers the newest version of each scope that Ambit wrote itself. A plan made from an older one would report
// the same news a second time. Losing this memory costs an event that says it twice, and nothing else.
type written struct {
	mu       sync.Mutex
	versions map[scopeID]uint64
}

type scopeID struct {
	namespace string
	uid       types.UID
}

func idOf(o client.Object) scopeID { return scopeID{o.GetNamespace(), o.GetUID()} }

func (w *written) note(nss client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil {
		w.versions = map[scopeID]uint64{}
	}

	w.versions[idOf(nss)] = scope.ParseVersion(nss.GetResourceVersion())
}

// keep forgets the scopes of a namespace that are no longer there.
func (w *written) keep(namespace string, scopes []resource) {
	w.mu.Lock()
	defer w.mu.Unlock()

	maps.DeleteFunc(w.versions, func(id scopeID, _ uint64) bool {
		return id.namespace == namespace && !slices.ContainsFunc(scopes, func(nss resource) bool {
			return nss.GetUID() == id.uid
		})
	})
}

// ahead says whether one of the scopes is older than what Ambit wrote last.
func (w *written) ahead(scopes []resource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, nss := range scopes {
		if scope.ParseVersion(nss.GetResourceVersion()) < w.versions[idOf(nss.Object)] {
			return true
		}
	}

	return false
}
