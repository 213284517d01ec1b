// Package template reconciles all ScopeTemplates and ScopeInstances together: an instance may change its template, and
// templates share the names of the cluster.
package template

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Reconciler keeps the cluster true to ScopeTemplates and ScopeInstances.
type Reconciler struct {
	generic.Shared

	// Client reads the resources from the cache, and writes their status, which is Ambit's own.
	Client client.Client
	// IsMissing says whether a kind is not there, because its definition is not.
	IsMissing func(client.Object) bool

	written changes.Written
}

// Reconcile reconciles all of them. There is one key for everything.
func (r *Reconciler) Reconcile(ctx context.Context, key scope.Key) (reconcile.Result, error) {
	return generic.Reconcile(ctx, key, &r.Shared, r.state)
}

// state is one reconciliation.
type state struct {
	*Reconciler

	key   scope.Key
	all   *resources
	facts *facts.Facts
}

func (r *Reconciler) state(ctx context.Context, key scope.Key) (*state, error) {
	all, err := r.read(ctx)

	return &state{Reconciler: r, key: key, all: all}, err
}

// Clear does nothing: what is left of the last template is found by a plan without scopes.
func (*state) Clear(context.Context, time.Time) (done bool, again reconcile.Result, err error) {
	return false, reconcile.Result{}, nil
}

// Wait is for all of them.
func (s *state) Wait() time.Duration { return s.written.Wait(s.all.objects()) }

// Compile says what the templates and instances mean.
func (s *state) Compile() []scope.Scope { return s.all.scopes() }

// Watch does nothing: what templates need is watched everywhere.
func (*state) Watch([]scope.Scope) error { return nil }

// Plan plans all of them together.
func (s *state) Plan(_ context.Context, f *facts.Facts, scopes []scope.Scope) *plan.Plan {
	s.facts = f
	f.ClusterScoped = plan.ClusterScoped(scopes, s.IsClusterScoped)
	f.ClusterBindings = s.Store.ClusterBindings(s.key, scopes, s.IsClusterScoped)
	p := plan.New(scopes, f)

	return &p
}

// ApplyPlan applies the plan.
func (s *state) ApplyPlan(ctx context.Context, p *plan.Plan) (*plan.Plan, *apply.Outcome) {
	return p, s.Applier.ApplyWith(ctx, p, s.Writers.Identities(p, &s.facts.OperatorNamespace), s.Writers.Orphans(s.key))
}

// Refused are the namespaces in which the outcome says that something was refused.
func (s *state) Refused(out *apply.Outcome) map[string]struct{} { return out.Refused(s.key.Namespace) }

// Report writes the status of each of them.
func (s *state) Report(ctx context.Context, p *plan.Plan, out *apply.Outcome) (reconcile.Result, error) {
	return generic.Result(out, s.report(ctx, s.all, p, out))
}
