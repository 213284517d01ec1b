package controllers

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func addCatalogs(m manager.Manager, wrap Wrap, r *catalog.Reconciler) error {
	cache, dirty := m.GetCache(), r.Changes

	own := catalog.Kinds()
	sources := append(make([]changes.Source, 0, 3+len(own)),
		// Which version is installed, and who is in charge of the namespace.
		source.TypedKind[client.Object](cache, scope.NewOLM(scope.KindCSV), catalog.ToKey(dirty, r.Quotas)),
		source.TypedKind[client.Object](cache, &operatorsv1.OperatorGroup{}, catalog.ToKey(dirty, r.Quotas)),
		source.TypedKind[client.Object](cache, &apiextensionsv1.CustomResourceDefinition{}, catalog.ToWaiting(dirty, cache)),
	)

	for _, kind := range own {
		sources = append(sources, source.TypedKind(cache, kind, catalog.ToKey(dirty, r.Quotas)))
	}

	_, err := add(m, scope.Catalogs, aside.New(wrap(scope.Catalogs, r), dirty), namespacesAtOnce, dirty, sources)

	return err
}
