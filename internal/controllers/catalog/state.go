package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// state is one reconciliation of a namespace.
type state struct {
	*Reconciler
	*resolution

	key scope.Key
	// ours says whether these kinds are Ambit's to serve.
	ours  bool
	facts *facts.Facts
	out   *apply.Outcome
	// refused are the namespaces in which something was refused.
	refused map[string]struct{}
	errs    []error
}

func (r *Reconciler) state(ctx context.Context, key scope.Key) (*state, error) {
	s := &state{
		Reconciler: r, key: key, ours: r.Ours(), out: &apply.Outcome{}, refused: map[string]struct{}{},
		resolution: &resolution{found: &resources{namespace: key.Namespace}, global: r.AmbitNamespace},
	}

	if !s.ours {
		return s, nil
	}

	var err error
	if s.found, err = r.read(ctx, key.Namespace); err != nil {
		return nil, err
	}

	s.errs = slices.AppendSeq(s.errs, maps.Values(s.found.unread))

	return s, r.offer(ctx, s.found)
}

// Clear is for a namespace in which there is nothing of the kinds, or nothing that is Ambit's to serve. The latter is not
// forgotten: a plan is asked for when that changes.
func (p *state) Clear(context.Context, time.Time) (done bool, again reconcile.Result, err error) {
	empty := len(p.found.objects()) == 0
	if p.ours && empty {
		p.Watches.Catalogs(p.found.namespace, nil)
		p.Changes.Forget(p.key)
	}

	return empty, again, nil
}

// Wait is for all that Ambit writes to, and for the group, by which nothing is installed that was written for another one.
func (p *state) Wait() time.Duration {
	if p.ours && p.Index.Contradicts(p.found.groups) {
		return changes.CacheWait
	}

	return p.written.Wait(p.found.objects())
}

// Compile returns none: a Subscription leads to no scope, but the ClusterServiceVersion that it installs does.
func (*state) Compile() []scope.Scope { return nil }

// Watch has the ConfigMaps watched that the catalogs of the namespace are in.
func (p *state) Watch([]scope.Scope) error {
	p.Watches.Catalogs(p.found.namespace, p.found.configMaps())

	return nil
}

// Plan decides which InstallPlans there should be, and which of them are carried out now.
func (p *state) Plan(ctx context.Context, f *facts.Facts, _ []scope.Scope) *plan.Plan {
	p.facts, p.now.Time = f, f.Now
	p.resolve()
	p.findChanged(ctx)
	p.findUninstalled(ctx)
	p.settle()
	p.findDefinitions(ctx)

	return &plan.Plan{Key: p.key}
}

// ApplyPlan creates InstallPlans, and carries out those that are approved.
func (p *state) ApplyPlan(ctx context.Context, planned *plan.Plan) (*plan.Plan, *apply.Outcome) {
	p.create(ctx)
	p.install(ctx)

	return planned, p.out
}

// Refused are the namespaces in which something was refused.
func (p *state) Refused(*apply.Outcome) map[string]struct{} { return p.refused }

// Report writes each status, and says when to look again: after a failure that may pass by itself, later each time. What is
// refused is tried again when permissions change, and for a while after that, until the API server has taken in the change.
func (p *state) Report(ctx context.Context, _ *plan.Plan, out *apply.Outcome) (reconcile.Result, error) {
	p.report(ctx)

	result, err := generic.Result(out, errors.Join(p.errs...))
	if err != nil || !result.IsZero() {
		return result, err
	}

	for namespace := range p.refused {
		if p.now.Sub(p.Store.PermissionsChangedAt(namespace, p.key.Namespace)) < settling {
			return reconcile.Result{RequeueAfter: checkInterval}, nil
		}

		result.RequeueAfter = refusedAgain
	}

	return result, nil
}

func (p *state) fail(err error) {
	if err != nil {
		p.errs = append(p.errs, err)
	}
}
