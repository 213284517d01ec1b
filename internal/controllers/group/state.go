package group

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// state is one reconciliation of a namespace.
type state struct {
	*Reconciler

	key   scope.Key
	found *resources
	// ours says whether these kinds are Ambit's to serve, and known whether that is known.
	ours, known bool
	// idle says that there is nothing to plan for.
	idle     bool
	snapshot *snapshot
	facts    *facts.Facts
	// as is who writes.
	as writer.Installer

	// members are in the order of found.csvs, and unreadable are the other CSVs, by the owner that their objects name.
	members    []member
	unreadable map[string]*unreadable
	// left are the words about webhook configurations of CSVs that are gone, which the identity may not delete.
	left []string
	// userRoles are what failed of the user ClusterRoles.
	userRoles []error
	errs      []error
	// installing says that the permissions are as they should be, so that what is written takes none away.
	installing bool
	// propagatedLess says that permissions in removed targets go, whatever the annotations still name.
	propagatedLess bool
	// nextCheck is when to plan again without any change; the zero time when there is no need.
	nextCheck time.Time
	// again says that what failed may succeed later, without a change that Ambit hears of.
	again bool
}

func (r *Reconciler) state(ctx context.Context, key scope.Key) (*state, error) {
	namespace := key.Namespace
	ours, known := r.Ours()

	found, err := r.read(ctx, namespace)
	if err != nil {
		return nil, err
	}

	s := &state{Reconciler: r, key: key, found: found, ours: ours, known: known}
	s.idle = found.isEmpty() || !ours && !r.Store.Projected(key)

	if ours {
		// What is unknown keeps nothing from being done.
		s.fail(r.reportUnreadable(ctx, found))
	}

	// The group that was there before must not install what was written for the one that is there now. What is to be revoked does
	// not wait for the cache: whoever writes groups could go on forever.
	if ours && r.Index.Contradicts(found.groups) {
		s.ours, s.known, s.nextCheck = false, false, r.Time().Add(changes.CacheWait)
	}

	// Anybody can write the marks that lead here, so nothing is watched because of them.
	if s.idle {
		r.Watches.Release(key)
	} else {
		r.Watches.Watch(key)
	}

	return s, nil
}

// Clear is for a namespace that holds nothing of the kinds any more, or nothing that is Ambit's to serve.
func (p *state) Clear(ctx context.Context, firstEvent time.Time) (done bool, again reconcile.Result, err error) {
	if p.idle && p.found.isEmpty() {
		again, err = p.serveNone(ctx, p.found.namespace, firstEvent, errors.Join(p.errs...))
	}

	return p.idle, again, err
}

// Wait is for ClusterServiceVersions. A group was read as it was written last, unless it is one that the cache has emptied.
func (p *state) Wait() time.Duration { return p.written.Wait(p.found.objects()) }

// Compile says of which namespaces a change matters. What is installed there is decided with the facts.
func (p *state) Compile() []scope.Scope { return p.found.interests() }

// Watch has the targets watched.
func (p *state) Watch([]scope.Scope) error { return p.watchTargets(p.found) }

// Plan decides what is installed, and plans its permissions.
func (p *state) Plan(ctx context.Context, f *facts.Facts, _ []scope.Scope) *plan.Plan {
	p.complete(f)
	p.facts = f
	p.fail(p.begin(ctx))

	if !p.ours {
		return p.revocation()
	}

	p.decide(ctx)

	return p.permissions(p.scopes())
}

// ApplyPlan applies the permissions, and writes what is installed with them.
func (p *state) ApplyPlan(ctx context.Context, planned *plan.Plan) (*plan.Plan, *apply.Outcome) {
	if !p.ours {
		return planned, p.revoke(ctx, planned)
	}

	out := p.grant(ctx, planned)
	if p.propagateLess(ctx) {
		planned = p.permissions(p.scopes())
		out = p.grant(ctx, planned)
	}

	p.install(ctx)
	p.checkSoon()

	return planned, out
}

// Report writes the status of each CSV and group, as far as they are Ambit's to serve.
func (p *state) Report(ctx context.Context, _ *plan.Plan, out *apply.Outcome) (reconcile.Result, error) {
	if !p.ours {
		return p.result(out, nil)
	}

	return p.result(out, p.report(ctx, p))
}
