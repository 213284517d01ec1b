package namespacescope

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// state is one reconciliation of an operator namespace.
type state struct {
	*Reconciler

	key       scope.Key
	resources []resource
	// problem says which scopes are not among the resources because they cannot be held, or inject into nothing.
	problem error
	facts   *facts.Facts
	// barred are the scopes that may not write their watch list, and why.
	barred map[scope.Owner]error
}

func (r *Reconciler) state(ctx context.Context, key scope.Key) (*state, error) {
	resources, problem, err := r.read(ctx, key.Namespace)

	return &state{Reconciler: r, key: key, resources: resources, problem: problem}, err
}

// Clear is for an operator namespace without scopes.
func (s *state) Clear(ctx context.Context, firstEvent time.Time) (done bool, again reconcile.Result, err error) {
	switch {
	case len(s.resources) > 0:
		return false, reconcile.Result{}, nil
	case !s.Writers.IsConfined():
		// What others left goes, whatever became of a scope that cannot be held.
		again, err = s.ended(s.clear(ctx, s.key, firstEvent))

		return true, again, err
	case s.Store.Projected(s.key):
		return false, reconcile.Result{}, nil
	case s.problem != nil:
		again, err = s.ended(reconcile.Result{}, nil)

		return true, again, err
	}

	s.Orphans.Forget(s.key)
	s.Changes.Forget(s.key)

	return true, reconcile.Result{}, nil
}

// Wait is zero: what was read is as new as what was written last, whatever the cache says. Only scopes that are left out may be
// older, and turns passes over those.
func (*state) Wait() time.Duration { return 0 }

// Compile says what each scope means to this manager.
func (s *state) Compile() []scope.Scope { return s.compile(s.resources) }

// Watch has members watched where not all namespaces are, and ClusterServiceVersions where a scope injects into those.
func (s *state) Watch(scopes []scope.Scope) error {
	s.Watches.Members(s.key, s.toWatch(s.key, scopes))
	s.Watches.CSVs(s.key.Namespace, slices.ContainsFunc(scopes, func(in scope.Scope) bool { return in.TouchesCSVs() }))

	return nil
}

// Plan plans all scopes together.
func (s *state) Plan(ctx context.Context, f *facts.Facts, scopes []scope.Scope) *plan.Plan {
	operatorNamespace := s.key.Namespace
	s.facts = f
	f.OperatorNamespace.LeftOut = leftOut(f.OperatorNamespace.LeftOut, s.resources)
	settings := Settings{
		Manager: s.Writers, RestartInterval: s.RestartInterval, FollowGrace: s.FollowGrace, FinishGrace: s.FinishGrace,
	}
	settings.Complete(f)
	f.ClusterBindings = s.Store.ClusterBindings(s.key, scopes, s.IsClusterScoped)
	s.barred = s.Applier.Bar(ctx, operatorNamespace, scopes, s.Writers.In(&f.OperatorNamespace))
	f.Leaving = s.leaving.get(operatorNamespace)
	p := s.planFinishing(ctx, scopes, f)
	leaving := stillLeaving(f.Leaving, p.Leaving(), f.Now)
	s.leaving.set(operatorNamespace, leaving, len(leaving) > 0)

	return &p
}

// ApplyPlan applies the plan, each scope as who writes for it.
func (s *state) ApplyPlan(ctx context.Context, p *plan.Plan) (*plan.Plan, *apply.Outcome) {
	in := &s.facts.OperatorNamespace
	out := s.Applier.ApplyWith(ctx, p, s.Writers.Identities(p, in), s.Writers.Orphans(s.key))
	out.Barred = s.barred

	return p, out
}

// Refused are the namespaces in which the outcome says that something was refused.
func (s *state) Refused(out *apply.Outcome) map[string]struct{} {
	return out.Refused(s.key.Namespace)
}

// Report writes the status of each scope.
func (s *state) Report(ctx context.Context, p *plan.Plan, out *apply.Outcome) (reconcile.Result, error) {
	late, err := s.writeStatuses(ctx, s.resources, p, out)

	return s.ended(result(p, out, late, err))
}

// ended is how a reconciliation ends: with the problem, of whatever kind it is, so that it is logged, because such a scope has no
// status that says so; only a conflict is tried again without a word. What others of the namespace wait for is asked for here:
// with an error, controller-runtime knows only the back-off, which may be minutes.
func (s *state) ended(again reconcile.Result, err error) (reconcile.Result, error) {
	isNews := err != nil || !apierrors.IsConflict(s.problem)
	if err = errors.Join(s.problem, err); err == nil {
		return again, nil
	}

	if again.RequeueAfter > 0 {
		s.Changes.Again(s.key, s.Time().Add(again.RequeueAfter))
	}

	if !isNews {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
	}

	return reconcile.Result{}, err
}
