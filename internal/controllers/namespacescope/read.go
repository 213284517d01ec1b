package namespacescope

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// read returns the scopes of a namespace, each held by its finalizer before anything is made for it, and starts or ends
// the watches of the namespace.
func (r *Reconciler) read(ctx context.Context, operatorNamespace string) ([]resource, error) {
	found, err := list(ctx, r.Client, operatorNamespace, &r.written)
	if err != nil {
		return nil, err
	}

	if found, err = r.fit(ctx, found); err != nil {
		return nil, err
	}

	resources := make([]resource, 0, len(found))

	for i := range found {
		nss := found[i]
		if nss.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(nss, operatorv1.Finalizer) {
			continue
		}

		// One that is left out serves nothing, so there is nothing to be taken back.
		if !nss.leftOut {
			if err := r.hold(ctx, &nss); err != nil {
				return nil, err
			}

			if err := r.announce(ctx, &nss); err != nil {
				return nil, err
			}
		}

		r.trim(&nss)

		resources = append(resources, nss)
	}

	// Marks that point to an operator namespace are no reason to watch it: anybody can write them. Where only members are
	// watched, they are read one by one, in the few namespaces that the operator namespace may access.
	if len(resources) > 0 || r.Writers.IsConfined() && r.Store.Projected(scope.NamespaceScopes.In(operatorNamespace)) {
		r.Watches.Watch(operatorNamespace)
	} else {
		r.Watches.Release(operatorNamespace)
	}

	return resources, nil
}

func (r *Reconciler) hold(ctx context.Context, nss *resource) error {
	if nss.GetDeletionTimestamp() != nil {
		return nil
	}

	before := nss.before()
	if !controllerutil.AddFinalizer(nss, operatorv1.Finalizer) {
		return nil
	}

	change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, nss.Object, change); err != nil {
		return fmt.Errorf("putting the finalizer on NamespaceScope %s/%s: %w", nss.GetNamespace(), nss.GetName(), err)
	}

	r.note(nss)

	return nil
}

// announce has the status say that the scope injects into ClusterServiceVersions before anything is injected there: once the
// injector is turned off, or the scope deleted, nothing else says where to take it back.
func (r *Reconciler) announce(ctx context.Context, nss *resource) error {
	if s := nss.compile(); s.Deleting() || !s.InjectCSVs || s.Injected {
		return nil
	}

	before := nss.before()
	report.Announce(nss.status, nss.GetGeneration())

	if err := generic.WriteStatus(ctx, r.Client, nss.Object, before); err != nil {
		return err
	}

	r.note(nss)

	return nil
}
