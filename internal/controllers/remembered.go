package controllers

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Remembered is what is kept in memory of the kinds of whose objects others decide the number and the size. Each kind is bounded
// by itself, in each namespace.
type Remembered struct {
	Scopes, Groups *declared.Quota
	CSVs           *group.Quota
	Catalogs       catalog.Quotas
}

// NewRemembered returns one that holds nothing.
func NewRemembered() *Remembered {
	return &Remembered{
		Scopes: namespacescope.NewQuota(), Groups: group.NewGroupQuota(), CSVs: group.NewQuota(), Catalogs: catalog.NewQuotas(),
	}
}

// Cache says what the manager's own cache holds: everything that is read through it, in the whole cluster. With namespaces that
// is nothing, because each of them has a cache of its own; see package kinds.
func Cache(s Settings) cache.Options {
	if len(s.Namespaces) == 0 {
		// Not by kind: controller-runtime ends a manager that starts while a kind in ByObject is not there.
		return cache.Options{NewInformer: read.NewInformer, DefaultTransform: s.Remembered.transform}
	}

	return cache.Options{NewInformer: read.NewInformer, ReaderFailOnMissingInformer: true}
}

// transform cuts what the manager's own cache holds down to what is needed of it.
func (r *Remembered) transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return cut(o), nil
	case *operatorv1.NamespaceScope, *namespacescopev1alpha1.NamespaceScope:
		return r.Scopes.Transform(o)
	case *operatorsv1.OperatorGroup:
		return r.Groups.Transform(o)
	case *unstructured.Unstructured:
		if o.GetKind() == scope.KindCSV && o.GroupVersionKind().Group == operatorsv1.GroupVersion.Group {
			return r.CSVs.Transform(o)
		}

		return r.Catalogs.Transform(o)
	}

	return obj, nil
}
