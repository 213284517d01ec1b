package catalog

import (
	"context"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Kinds returns an empty object of each kind that is reconciled here.
func Kinds() []client.Object {
	return []client.Object{newObject(sourceKind), newObject(subscriptionKind), newObject(planKind)}
}

// ToKey asks for a reconcile of the namespace that a resource is in. The quotas take note of what is gone; they may be nil.
func ToKey(quotas Quotas) handler.EventHandler {
	toKey := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return request(obj.GetNamespace())
	})

	return handler.Funcs{
		CreateFunc: toKey.Create, UpdateFunc: toKey.Update, GenericFunc: toKey.Generic,
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			quotas.gone(e.Object)
			q.Add(request(e.Object.GetNamespace())[0])
		},
	}
}

// ToWaiting asks for a reconcile of each namespace in which an InstallPlan is not done yet: a definition came or went, and one
// of them may have waited for that.
func ToWaiting(cache client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := newList(planKind)
		if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil // It is asked only once it is filled.
		}

		var out []reconcile.Request

		for i := range list.Items {
			phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
			if phase != string(olmv1alpha1.InstallPlanPhaseComplete) {
				out = append(out, request(list.Items[i].GetNamespace())...)
			}
		}

		return out
	})
}

func request(namespace string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: scope.CatalogKey(namespace)}}}
}
