package changes

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// What is requested of a controller is a reconcile key. These are controller-runtime's types for that.
type (
	// Controller runs a reconciler.
	Controller = controller.TypedController[scope.Key]
	// Reconciler serves requests.
	Reconciler = reconcile.TypedReconciler[scope.Key]
	// ReconcilerFunc is a function that does.
	ReconcilerFunc = reconcile.TypedFunc[scope.Key]
	// Queue is that of a controller.
	Queue = workqueue.TypedRateLimitingInterface[scope.Key]
	// Source is where requests come from.
	Source = source.TypedSource[scope.Key]
	// SourceFunc is a function that is one.
	SourceFunc = source.TypedFunc[scope.Key]
	// Handler makes requests of the changes of objects.
	Handler = handler.TypedEventHandler[client.Object, scope.Key]
	// HandlerFuncs are functions that do, one for each sort of change.
	HandlerFuncs = handler.TypedFuncs[client.Object, scope.Key]
)

// Requesting makes a request of each key that a change of an object leads to, and notes in Changes that it was asked for. Where
// changes do not end, it waits for others.
func Requesting(to *Changes, keys handler.TypedMapFunc[client.Object, scope.Key]) Handler {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []scope.Key {
		return to.ask(keys(ctx, obj)...)
	})
}

// ToKey asks for a reconcile of a family in the namespace that an object is in. gone is notified of each that was deleted.
func ToKey(to *Changes, family scope.Family, gone func(client.Object)) Handler {
	toKey := Requesting(to, func(_ context.Context, obj client.Object) []scope.Key {
		return []scope.Key{family.In(obj.GetNamespace())}
	})

	return HandlerFuncs{
		CreateFunc: toKey.Create, UpdateFunc: toKey.Update, GenericFunc: toKey.Generic,
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) {
			gone(e.Object)
			toKey.Delete(ctx, e, q)
		},
	}
}

// Objects are the items of a list, as objects.
func Objects(items []unstructured.Unstructured) []client.Object {
	return collect.Map(collect.Pointers(items), func(obj *unstructured.Unstructured) client.Object { return obj })
}
