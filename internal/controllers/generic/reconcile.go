// Package generic reconciles resources of any kind, in the order that all kinds have in common. Each family of kinds is an
// adapter to it.
package generic

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Shared is what the reconcilers of all kinds work with.
type Shared struct {
	Store   *read.Store
	Watches *read.Watches
	Applier *apply.Applier
	// Writers says who writes.
	Writers  *writer.Manager
	Recorder events.EventRecorder
	Metrics  *report.Metrics
	Changes  *changes.Changes
	// Orphans reports what scopes left behind; nil where nothing is reported.
	Orphans *report.OrphanReporter

	// AmbitNamespace is where Ambit runs; labels never select it.
	AmbitNamespace string
	// Now is the clock; nil means that of the machine.
	Now func() time.Time
	// IsClusterScoped says of a custom resource whether it is known to have no namespace. For scopes, it is not asked where nothing
	// may be read cluster-wide.
	IsClusterScoped func(group, resource string) bool
	// Simulation takes part where plans are applied in memory; nil in a manager.
	Simulation Simulation
}

// Simulation takes part where a plan for a reconcile key is made, and applied in memory.
type Simulation interface {
	// Facts takes out of what was read what is unknown in memory.
	Facts(f *facts.Facts)
	// Plan takes out of a plan what is unknown.
	Plan(p *plan.Plan)
	// Applied receives the outcome of a plan.
	Applied(p *plan.Plan, f *facts.Facts, out *apply.Outcome)
}

// State is what was read for one reconcile key, on its way through one reconciliation. Its methods are called in this order.
type State interface {
	// Clear says whether there is nothing to plan for. If so, it has taken away what is left in the cluster of what was there
	// before.
	Clear(ctx context.Context, firstEvent time.Time) (done bool, again reconcile.Result, err error)
	// Wait is how long the cache may take to report Ambit's own writes; zero where nothing has to be waited for.
	Wait() time.Duration
	// Compile says what the resources mean. What takes facts to say may be missing; which namespaces matter may not.
	Compile() []scope.Scope
	// Watch asks for the watches without which the facts would not be complete.
	Watch(scopes []scope.Scope) error
	// Plan adds to the facts what the store does not know, and says what should exist.
	Plan(ctx context.Context, f *facts.Facts, scopes []scope.Scope) *plan.Plan
	// ApplyPlan applies a plan. It returns the last one that it applied: what it did may have called for another one.
	ApplyPlan(ctx context.Context, p *plan.Plan) (*plan.Plan, *apply.Outcome)
	// Refused are the namespaces in which something was refused, or stood in the way.
	Refused(out *apply.Outcome) map[string]struct{}
	// Report writes what users see, and says when to come again.
	Report(ctx context.Context, p *plan.Plan, out *apply.Outcome) (reconcile.Result, error)
}

// Reconcile reads, compiles, plans, applies and reports, for one reconcile key.
func Reconcile[S State](
	ctx context.Context, key scope.Key, with *Shared, readState func(ctx context.Context, key scope.Key) (S, error),
) (reconcile.Result, error) {
	firstEvent := with.Changes.Dequeue(key)

	s, err := readState(ctx, key)
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
	}

	if err != nil {
		return reconcile.Result{}, err
	}

	if done, again, err := s.Clear(ctx, firstEvent); done || err != nil {
		return again, err
	}

	if wait := s.Wait(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // The cache is about to report a write of Ambit's own.
	}

	scopes := s.Compile()
	// Before the facts are taken, so that no change of a namespace falls between the two.
	with.Changes.Follow(key, scopes)

	if err := s.Watch(scopes); err != nil {
		return reconcile.Result{}, err
	}

	f, listed := with.Facts(key, scope.WatchLists(scopes)...)
	if !listed {
		return reconcile.Result{}, nil // The store asks for a plan once it has listed everything.
	}

	p, out := applied(ctx, with.Simulation, s, f, scopes)
	with.Changes.Refuse(key, s.Refused(out))
	with.Changes.Define(key, len(f.ClusterBindings.Giving) > 0 || key.Family == scope.Templates)
	with.Changes.Wrote(with.Applier.TakeWritten(key), plan.Propagation)
	// Whatever fails from here on: what is due at a time does not wait for it.
	with.Changes.Again(key, with.Applier.PlanAgain(p, f, out))
	with.Metrics.Applied(p, out, with.Store.Size(key), firstEvent)

	if with.Orphans != nil {
		with.Orphans.Report(p, out, f)
	}

	return s.Report(ctx, p, out)
}

func applied[S State](
	ctx context.Context, simulation Simulation, s S, f *facts.Facts, scopes []scope.Scope,
) (*plan.Plan, *apply.Outcome) {
	if simulation == nil {
		return s.ApplyPlan(ctx, s.Plan(ctx, f, scopes))
	}

	simulation.Facts(f)

	p := s.Plan(ctx, f, scopes)
	simulation.Plan(p)

	p, out := s.ApplyPlan(ctx, p)
	simulation.Applied(p, f, out)

	return p, out
}

// Facts returns the facts for a reconcile key, with what is the same for all kinds; false until everything is listed.
func (s *Shared) Facts(key scope.Key, lists ...string) (*facts.Facts, bool) {
	f, listed := s.Store.Facts(key, s.Time(), lists...)
	if listed {
		f.AmbitNamespace, f.Granting = s.AmbitNamespace, s.Applier.Granting(key)
		f.Granted = s.Applier.Granted(key)
	}

	return f, listed
}

// Time is what the clock says.
func (s *Shared) Time() time.Time {
	if s.Now != nil {
		return s.Now()
	}

	return time.Now()
}

// Result says when to reconcile again after a plan was applied, and reported with an error or without: after a failure, later
// each time.
func Result(out *apply.Outcome, err error) (reconcile.Result, error) {
	failed, transient := out.Failed(err)
	if transient != nil {
		return reconcile.Result{}, transient
	}

	return reconcile.Result{Requeue: failed}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
}
