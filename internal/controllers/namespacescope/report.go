package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// writeStatuses writes the status of each scope, and removes the finalizer of those that are deleted. Scopes that are left out
// come last and do not delay the others for long: late says whether some of them are still to be written.
func (r *Reconciler) writeStatuses(
	ctx context.Context, resources []resource, p *plan.Plan, out *apply.Outcome,
) (late bool, err error) {
	var errs []error

	turns := r.turns(resources, p)

	// No scope waits for another one: one whose status cannot be written keeps no deleted one.
	for _, write := range []func(int) error{
		func(i int) error { return r.report(ctx, resourceOf(resources, p.Scopes[i].Scope), p, out, i) },
		func(i int) error { return r.letGo(ctx, resourceOf(resources, p.Scopes[i].Scope), p, out, i) },
	} {
		errs = append(errs, generic.InTurn(len(turns.first), func(i int) error { return write(turns.first[i]) }))
	}

	began := time.Now()

	for _, i := range turns.last {
		if time.Since(began) > lateScopes {
			return true, errors.Join(errs...)
		}

		nss := resourceOf(resources, p.Scopes[i].Scope)

		// A scope that goes needs no status.
		if p.Scopes[i].Scope.Deleting() && finished(p, out, i) {
			errs = append(errs, r.letGo(ctx, nss, p, out, i))
		} else {
			errs = append(errs, r.report(ctx, nss, p, out, i))
		}
	}

	return false, errors.Join(errs...)
}

// report writes the status of a scope if it differs, and after that the events that speak of it.
func (r *Reconciler) report(ctx context.Context, nss *resource, p *plan.Plan, out *apply.Outcome, i int) error {
	before, was := nss.before(), nss.status.DeepCopy()
	*nss.status = report.Status(p, out, i, was)
	r.Metrics.Scope(nss.GetNamespace(), grant.Short(nss.owner), len(nss.status.ValidatedMembers), len(nss.status.FailedMembers),
		meta.IsStatusConditionTrue(nss.status.Conditions, report.ConditionReady))
	report.Cut(nss.status, nss.statusLimit())

	var err error

	shown := nss.status

	if !equality.Semantic.DeepEqual(was, nss.status) {
		if err = generic.WriteStatus(ctx, r.Client, nss.Object, before); err != nil {
			// The events are sent even so: the next plan does not know any more what was done.
			shown = was
		} else {
			r.note(nss)
		}
	}

	r.trim(nss)

	for _, e := range report.EventsOf(p, out, i, was, shown) {
		e.Send(r.Recorder, nss.Object)
	}

	return err
}

// letGo takes the finalizer from a deleted scope for which nothing is left to do.
func (r *Reconciler) letGo(ctx context.Context, nss *resource, p *plan.Plan, out *apply.Outcome, i int) error {
	if !p.Scopes[i].Scope.Deleting() || !finished(p, out, i) {
		return nil
	}

	before := nss.before()
	controllerutil.RemoveFinalizer(nss, operatorv1.Finalizer)

	err := r.Client.Patch(ctx, nss.Object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the finalizer from NamespaceScope %s/%s: %w", nss.GetNamespace(), nss.GetName(), err)
	}

	r.note(nss)
	r.trim(nss)

	return nil
}

func resourceOf(resources []resource, s *scope.Scope) *resource {
	for i := range resources {
		if resources[i].owner == s.Owner {
			return &resources[i]
		}
	}

	return nil
}
