package home

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
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

func idOf(nss *operatorv1.NamespaceScope) scopeID { return scopeID{nss.Namespace, nss.UID} }

func (w *written) note(nss *operatorv1.NamespaceScope) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil {
		w.versions = map[scopeID]uint64{}
	}

	w.versions[idOf(nss)] = scope.ParseVersion(nss.ResourceVersion)
}

// keep forgets the scopes of a namespace that are no longer there.
func (w *written) keep(namespace string, scopes []operatorv1.NamespaceScope) {
	w.mu.Lock()
	defer w.mu.Unlock()

	maps.DeleteFunc(w.versions, func(id scopeID, _ uint64) bool {
		return id.namespace == namespace && !slices.ContainsFunc(scopes, func(nss operatorv1.NamespaceScope) bool {
			return nss.UID == id.uid
		})
	})
}

// ahead says whether one of the scopes is older than what Ambit wrote last.
func (w *written) ahead(scopes []*operatorv1.NamespaceScope) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, nss := range scopes {
		if scope.ParseVersion(nss.ResourceVersion) < w.versions[idOf(nss)] {
			return true
		}
	}

	return false
}
