package read

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Catalog is what is known of the ConfigMap of a catalog.
type Catalog struct {
	// ResourceVersion stands first: reflect.DeepEqual compares it before the content, which is large.
	ResourceVersion string
	UID             types.UID
	Content         *catalog.Catalog
}

// catalogWatch watches one ConfigMap.
type catalogWatch struct {
	listed[Catalog]

	stop context.CancelFunc
}

// Catalogs makes sure that just these ConfigMaps of a namespace are watched as catalogs, each by its name: others of the
// namespace are nobody's business here. It does not wait; the listener is notified when each has been looked for.
func (w *Watches) Catalogs(namespace string, names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	for key, watch := range w.store.catalogs {
		if key.Namespace == namespace && !slices.Contains(names, key.Name) {
			watch.stop()
			delete(w.store.catalogs, key)
		}
	}

	if w.running == nil {
		w.pending[scope.Catalogs.In(namespace)] = struct{}{}

		return
	}

	for _, name := range names {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if _, watched := w.store.catalogs[key]; !watched {
			w.startCatalog(key)
		}
	}
}

// startCatalog is called with both locks held.
func (w *Watches) startCatalog(key types.NamespacedName) {
	s := w.store
	ctx, stop := context.WithCancel(w.running)
	watch := &catalogWatch{stop: stop}
	reconcileKey := scope.Catalogs.In(key.Namespace)

	s.catalogs[key] = watch

	// Each of its versions is read once, as it arrives.
	k := whileRunning(ctx, *watch.sink(&s.mu, func(obj client.Object) (c Catalog, keep bool) {
		w.turns.take(ctx, key.Namespace, func() { c, keep = convertCatalog(obj) })

		return c, keep
	}, func() { s.listener.KeyChanged(reconcileKey) }))
	follow(ctx, w.client, &k, &corev1.ConfigMapList{}, nil, client.InNamespace(key.Namespace),
		client.MatchingFields{"metadata.name": key.Name})
}

// Catalog returns what a ConfigMap that is watched as a catalog holds, nil when it is not there; and whether that is known.
func (s *Store) Catalog(namespace, name string) (*Catalog, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()

	key := types.NamespacedName{Namespace: namespace, Name: name}

	watch, watched := s.catalogs[key]
	if !watched || !watch.isListed {
		return nil, false
	}

	row, found := watch.rows[key]
	if !found {
		return nil, true
	}

	return &row.record, true
}

// convertCatalog parses a catalog.
func convertCatalog(obj client.Object) (Catalog, bool) {
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return Catalog{}, false
	}

	return Catalog{ResourceVersion: cm.ResourceVersion, UID: cm.UID, Content: catalog.Parse(cm.Data)}, true
}
