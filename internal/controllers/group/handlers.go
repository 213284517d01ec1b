package group

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Gone is notified of what was deleted.
type Gone func(namespace string, uid types.UID)

// Changed asks for a plan of the namespace that a resource is in, through Changes, which debounces. gone, if given, is notified
// of what was deleted.
func Changed(to *changes.Changes, gone Gone) changes.Handler {
	funcs := handling(func(_ context.Context, obj client.Object) { to.KeyChanged(scope.Installs.In(obj.GetNamespace())) })
	deleted := funcs.DeleteFunc
	funcs.DeleteFunc = func(ctx context.Context, e event.DeleteEvent, q changes.Queue) {
		if gone != nil {
			gone(e.Object.GetNamespace(), e.Object.GetUID())
		}

		deleted(ctx, e, q)
	}

	return funcs
}

// handling calls a function for each object that came, changed or went.
func handling(changed func(context.Context, client.Object)) changes.HandlerFuncs {
	return changes.HandlerFuncs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, _ changes.Queue) { changed(ctx, e.Object) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, _ changes.Queue) { changed(ctx, e.ObjectNew) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, _ changes.Queue) { changed(ctx, e.Object) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, _ changes.Queue) { changed(ctx, e.Object) },
	}
}

// byDefinition is the name of the index by which the cache finds ClusterServiceVersions that own or require a definition.
const byDefinition = "definitions"

// Indexes are those by which the reconciler finds ClusterServiceVersions in its cache.
func Indexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{byAPI: providedBy, byDefinition: definitionsOf}
}

func definitionsOf(obj client.Object) []string { return ofOriginal(obj, install.Definitions) }

// ToAll asks for a plan of everything that is installed: a definition came, went or changed. Where no ClusterServiceVersion names
// it, it may matter all the same, by an API that it brings for example, but everything else comes first.
func ToAll(to *changes.Changes, store *read.Store, cache client.Reader) changes.Handler {
	return handling(func(ctx context.Context, obj client.Object) {
		to.DefinitionsChanged(store.InstallKeys())

		list := scope.NewOLMList(scope.KindCSV)
		if err := cache.List(ctx, list, client.MatchingFields{byDefinition: obj.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			return // It is asked only once it is filled, and all of them are asked for.
		}

		for i := range list.Items {
			to.KeyChanged(scope.Installs.In(list.Items[i].GetNamespace()))
		}
	})
}
