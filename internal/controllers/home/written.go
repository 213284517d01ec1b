package home

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// written remembers the newest version of each scope that Ambit wrote itself. A plan made from an older one would report
// the same news a second time. Losing this memory costs an event that says it twice, and nothing else.
type written struct {
	mu       sync.Mutex
	versions map[types.UID]uint64
}

func (w *written) note(nss *operatorv1.NamespaceScope) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil {
		w.versions = map[types.UID]uint64{}
	}

	w.versions[nss.UID] = version(nss)
}

func (w *written) forget(nss *operatorv1.NamespaceScope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, nss.UID)
}

// ahead says whether one of the scopes is older than what Ambit wrote last.
func (w *written) ahead(scopes []*operatorv1.NamespaceScope) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, nss := range scopes {
		if version(nss) < w.versions[nss.UID] {
			return true
		}
	}

	return false
}

func version(nss *operatorv1.NamespaceScope) uint64 {
	n, err := strconv.ParseUint(nss.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}

	return n
}
