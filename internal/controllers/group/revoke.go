package group

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// revoke takes away what Ambit made and what is no longer asked for, and does nothing else: others serve these kinds. No
// permission outlives its ClusterServiceVersion or its group because of that.
//
// While it is not known who serves them, Ambit may be about to go on, so the order of things stays.
func (p *state) revoke(ctx context.Context, key string, known bool) (reconcile.Result, error) {
	for _, csv := range p.found.csvs {
		p.members = append(p.members, member{csv: csv, verdict: p.snapshot.Decide(csv)})
	}

	scopes := p.scopes()

	if known {
		for i := range scopes {
			scopes[i].Listed = nil // Somebody else tells the operator where to work, and nobody waits for Ambit to do so.
		}
	}

	planned := plan.New(scopes, p.facts)
	planned.Orphans = slices.DeleteFunc(planned.Orphans, p.keeps)
	onlyRevoke(&planned, known)

	if known {
		p.forgetWebhooks(ctx, nil) // Whoever serves these kinds sets up webhooks of their own.
	}

	out := p.Applier.ApplyWith(ctx, &planned, p.identities(&planned), p.removes)
	p.Changes.Refuse(key, out.Refused(key))
	p.Orphans.Report(&planned, out, p.facts)

	return p.result(out, nil)
}

// onlyRevoke makes a plan one that grants nothing. With outdated, what is not as it should be is taken away: to correct it
// could grant something, and whoever serves these kinds grants what they say now.
func onlyRevoke(p *plan.Plan, outdated bool) {
	for i := range p.Scopes {
		s := &p.Scopes[i]

		for _, c := range s.Grant {
			// The ClusterRoles of a group hold no rules of their own, and people are bound to them.
			if outdated && c.Action != plan.Create && s.Scope.Owner.Kind != scope.KindGroup {
				s.Revoke = append(s.Revoke, plan.Change{
					Action: plan.Delete, Namespace: c.Namespace, Key: c.Key, Version: c.Version,
				})
			}
		}

		s.Grant = nil
	}
}
