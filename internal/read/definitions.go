package read

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definition is whether a CustomResourceDefinition is there: its name is watched, and nothing else of it. All are fields of the
// store, under its lock.
type definition struct {
	listed[struct{}]

	// notify are called with the store locked, when it is first known and whenever it comes or goes.
	notify []func()
}

// FollowDefinition has a CustomResourceDefinition watched by its name, where anything may be watched cluster-wide. changed is
// notified when it is first known whether it is there, and when it comes or goes; it must not wait for anything. It is called
// before Start.
func (w *Watches) FollowDefinition(name string, changed func()) {
	if w.store.definitions == nil {
		w.store.definitions = map[string]*definition{}
	}

	d := w.store.definitions[name]
	if d == nil {
		d = &definition{}
		w.store.definitions[name] = d
	}

	d.notify = append(d.notify, changed)
}

// Definition says whether a CustomResourceDefinition that is followed is there, and whether that is known.
func (w *Watches) Definition(name string) (there, known bool) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	d := w.store.definitions[name]
	if d == nil {
		return false, false
	}

	return len(d.rows) > 0, d.isListed
}

func (w *Watches) startDefinitions(ctx context.Context) {
	for name, d := range w.store.definitions {
		s := d.sink(&w.store.mu, convertName, func() {
			for _, notify := range d.notify {
				notify()
			}
		})
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))

		follow(ctx, w.client, s, list, nil, client.MatchingFields{"metadata.name": name})
	}
}
