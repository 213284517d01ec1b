package controllers

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/install"
)

// cut keeps of a definition what the controllers look at. Who may create one decides how much there is of everything else.
func cut(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion, DeletionTimestamp: crd.DeletionTimestamp,
	}}
	out.Spec.Scope = crd.Spec.Scope
	out.Spec.Conversion = install.CutConversion(crd.Spec.Conversion)

	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v.Name, Served: v.Served, Storage: v.Storage,
		})
	}

	for i := range crd.Status.Conditions {
		if c := &crd.Status.Conditions[i]; c.Type == apiextensionsv1.Established {
			out.Status.Conditions = append(out.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
				Type: c.Type, Status: c.Status,
			})
		}
	}

	return out
}

// defined asks definitions what they say of their kinds, once the cache has them all. It has nobody wait for that.
func defined(ctx context.Context, c cache.Cache) discovered.Defined {
	return func(name string) (namespaced, known bool) {
		crd := &apiextensionsv1.CustomResourceDefinition{}

		informer, err := c.GetInformer(ctx, crd, cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() || c.Get(ctx, client.ObjectKey{Name: name}, crd) != nil {
			return false, false
		}

		return crd.Spec.Scope != apiextensionsv1.ClusterScoped, discovered.IsEstablished(crd)
	}
}

// ofDefinitions handles changes of what is kept of definitions, for those who look at nothing else. One matters to all
// namespaces, and whoever may write a single one can write something else into it all the time.
func ofDefinitions(handler changes.Handler) changes.Handler {
	return changes.HandlerFuncs{
		CreateFunc: handler.Create, DeleteFunc: handler.Delete, GenericFunc: handler.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q changes.Queue) {
			was, _ := e.ObjectOld.DeepCopyObject().(client.Object) // A copy has the type of its original.
			was.SetResourceVersion(e.ObjectNew.GetResourceVersion())

			if !equality.Semantic.DeepEqual(was, e.ObjectNew) {
				handler.Update(ctx, e, q)
			}
		},
	}
}
