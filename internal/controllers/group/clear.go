package group

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// serveNone clears a namespace that holds no group any more, and no CSV that can be read, and notifies its neighbours. failed is
// what failed before.
func (r *Reconciler) serveNone(
	ctx context.Context, namespace string, firstEvent time.Time, failed error,
) (reconcile.Result, error) {
	result, clearing := r.clear(ctx, namespace, firstEvent)

	err := errors.Join(failed, clearing, r.notifyRivals(ctx, namespace, nil))
	if err != nil && apply.Classify(err) == apply.Conflict {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
	}

	return result, err
}

// clear takes away what is left in the cluster of what was installed in such a namespace. Where Ambit holds no rights of its own,
// it acts as the account that a group of the namespace named last, if one did since Ambit started.
func (r *Reconciler) clear(ctx context.Context, namespace string, firstEvent time.Time) (reconcile.Result, error) {
	key := scope.Installs.In(namespace)

	f, listed := r.Store.Leftovers(key, r.Time())
	if !listed {
		return reconcile.Result{}, nil // The store asks for a plan once it has listed everything.
	}

	r.Changes.Forget(key)

	p, removes := plan.New(nil, f), r.installer(namespace, nil).Removes
	left := r.clearWebhooks(ctx, namespace, removes)

	if (len(p.Orphans) == 0 || removes.IsNobody()) && left == nil {
		if err := r.Watches.Targets(namespace, "", nil); err != nil {
			return reconcile.Result{}, err
		}

		r.remembered.Delete(namespace)
		r.Orphans.ReportLeft(&p, f)

		return reconcile.Result{}, nil
	}

	out := r.Applier.ApplyWith(ctx, &p, nil, removes)
	refused := out.Refused(namespace)

	if left != nil {
		refused[""] = struct{}{}
	}

	r.Changes.Refuse(key, refused)
	r.Metrics.Applied(&p, out, 0, firstEvent)
	r.Orphans.Report(&p, out, f)

	result, err := generic.Result(out, nil)
	if left != nil {
		return reconcile.Result{}, errors.Join(err, left)
	}

	return result, err
}

// clearWebhooks removes the webhook configurations of such a namespace. What may not be removed keeps nothing else from going.
func (r *Reconciler) clearWebhooks(ctx context.Context, namespace string, removes apply.Identity) error {
	if removes.IsNobody() {
		return nil
	}

	var errs []error

	for _, obj := range install.WebhooksToRemove(r.Store.InstalledWebhooks(namespace), nil) {
		errs = append(errs, r.Applier.Remove(ctx, removes, obj))
	}

	return errors.Join(errs...)
}
