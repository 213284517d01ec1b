package group

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Gone is notified of what was deleted.
type Gone func(namespace string, uid types.UID)

// Changed asks for a plan of the namespace that a resource is in, as often as that is good for others. gone, if given, is
// notified of what was deleted.
func Changed(to *changes.Changes, gone Gone) handler.EventHandler {
	changed := func(obj client.Object) { to.KeyChanged(scope.InstallKey(obj.GetNamespace())) }

	return handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, _ queue) { changed(e.Object) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, _ queue) { changed(e.ObjectNew) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, _ queue) { changed(e.Object) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			if gone != nil {
				gone(e.Object.GetNamespace(), e.Object.GetUID())
			}

			changed(e.Object)
		},
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ToAll asks for a plan of everything that is installed: a definition came or went.
func ToAll(store *read.Store) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return requests(store.InstallKeys()...)
	})
}

func requests(keys ...string) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(keys))
	for _, key := range keys {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: key}})
	}

	return out
}
