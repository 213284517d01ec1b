package group

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// state is one reconciliation of a namespace.
type state struct {
	*Reconciler

	found    *resources
	snapshot *snapshot
	facts    *facts.Facts
	// identity is who writes, and removes who takes permissions away.
	identity, removes apply.Identity

	// members are in the order of found.csvs, and unreadable are the others by how their objects name them.
	members    []member
	unreadable map[string]*unreadable
	// userRoles are what failed of the ClusterRoles for people.
	userRoles []error
	errs      []error
	// propagatedLess says that what was taken from the group goes, whoever is told of it still.
	propagatedLess bool
	// look is when the next certificate has to be looked at; the zero time when there is none.
	look time.Time
	// again says that a write was refused in a way that may change unheard.
	again bool
}

// serve decides what is installed with which permissions, and makes it so.
func (p *state) serve(ctx context.Context, key string, firstEvent time.Time) (reconcile.Result, error) {
	p.decide(ctx)

	began := p.facts // What operators are told of meanwhile is planned from later ones.

	made, out := p.permissions(ctx)
	if p.propagateLess(ctx) {
		made, out = p.permissions(ctx)
	}

	p.install(ctx)
	p.lookSoon()

	p.Changes.Refuse(key, p.refusedIn(out, key))
	p.Changes.Again(key, p.Applier.PlanAgain(made, began))
	p.Metrics.Applied(made, out, p.Store.Size(key), firstEvent)
	p.Orphans.Report(made, out, began)

	return p.result(out, p.report(ctx, p))
}
