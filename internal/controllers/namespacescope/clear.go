package namespacescope

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// clear takes away what is left in the cluster of the scopes of an operator namespace that has none any more. What it looks at
// are marks, which anybody can write with any namespace in them. So it opens no watch, and asks for the watch lists only where
// something is left that Ambit made.
func (r *Reconciler) clear(ctx context.Context, key scope.Key, firstEvent time.Time) (reconcile.Result, error) {
	f, listed := r.Store.Leftovers(key, r.Time())
	if !listed {
		return reconcile.Result{}, nil // The store asks for a plan once it has listed everything.
	}

	p, orphans := plan.New(nil, f), r.Writers.Orphans(key)
	if len(p.Orphans) == 0 || orphans.IsNobody() {
		r.Orphans.ReportLeft(&p, f)
		r.Changes.Forget(key)

		return reconcile.Result{}, nil
	}

	var err error
	if f.OperatorNamespace.ConfigMaps, err = r.Watches.Lists(ctx, key.Namespace); err != nil {
		return reconcile.Result{}, err
	}

	p = plan.New(nil, f)
	out := r.Applier.ApplyWith(ctx, &p, nil, orphans)
	r.Metrics.Applied(&p, out, 0, firstEvent)
	r.Orphans.Report(&p, out, f)
	r.Changes.Forget(key)

	return result(&p, out, false, nil)
}
