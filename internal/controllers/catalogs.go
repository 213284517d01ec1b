package controllers

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/install"
)

func addCatalogs(m manager.Manager, wrap Wrap, heard *changes.Changes, r *catalog.Reconciler) error {
	c, err := controller.New("catalog", m, controller.Options{
		Reconciler: aside.New(wrap("catalog", r), heard.KeyChanged), MaxConcurrentReconciles: namespacesAtOnce,
		RateLimiter: newBackOff(),
	})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}

	cache := m.GetCache()

	sources := []source.Source{
		source.Func(func(_ context.Context, q queue) error {
			heard.StartCatalogs(q)

			return nil
		}),
		// Which version is installed, and who is in charge of the namespace.
		source.Kind[client.Object](cache, install.NewObject(), catalog.ToKey(r.Rooms)),
		source.Kind[client.Object](cache, &operatorsv1.OperatorGroup{}, catalog.ToKey(r.Rooms)),
		source.Kind[client.Object](cache, &apiextensionsv1.CustomResourceDefinition{}, catalog.ToWaiting(cache)),
	}

	for _, kind := range catalog.Kinds() {
		sources = append(sources, source.Kind(cache, kind, catalog.ToKey(r.Rooms)))
	}

	return watch(c, sources)
}
