package group

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Gone is notified of what was deleted.
type Gone func(namespace string, uid types.UID)

// Changed asks for a plan of the namespace that a resource is in, through Changes, which debounces. gone, if given, is notified
// of what was deleted.
func Changed(to *changes.Changes, gone Gone) changes.Handler {
	changed := func(obj client.Object) { to.KeyChanged(scope.Installs.In(obj.GetNamespace())) }

	return changes.HandlerFuncs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, _ changes.Queue) { changed(e.Object) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, _ changes.Queue) { changed(e.ObjectNew) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, _ changes.Queue) { changed(e.Object) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ changes.Queue) {
			if gone != nil {
				gone(e.Object.GetNamespace(), e.Object.GetUID())
			}

			changed(e.Object)
		},
	}
}

// ToAll asks for a plan of everything that is installed: a definition came or went.
func ToAll(to *changes.Changes, store *read.Store) changes.Handler {
	return changes.Requesting(to, func(context.Context, client.Object) []scope.Key { return store.InstallKeys() })
}
