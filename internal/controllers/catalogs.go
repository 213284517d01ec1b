package controllers

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func addCatalogs(m manager.Manager, wrap Wrap, known *kinds.Kinds, r *catalog.Reconciler) error {
	dirty := r.Changes
	// Besides its own: which version is installed, and who is in charge of the namespace.
	sources := append(sourcesOf(known, olmKinds(), catalog.ToKey(dirty, r.Quotas)), source.TypedKind[client.Object](
		m.GetCache(), &apiextensionsv1.CustomResourceDefinition{}, catalog.ToWaiting(dirty, known)))

	_, err := add(m, scope.Catalogs, aside.New(wrap(scope.Catalogs, r), dirty), namespacesAtOnce, dirty, sources)

	return err
}
