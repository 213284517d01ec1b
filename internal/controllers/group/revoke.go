package group

import (
	"context"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// revocation plans to take away what Ambit made and nobody asks for any more, and nothing else: others serve these kinds. No
// permission outlives its ClusterServiceVersion or its group because of that.
//
// While it is not known who serves them, Ambit may be about to continue, so the order of things stays.
func (p *state) revocation() *plan.Plan {
	for _, csv := range p.found.csvs {
		p.members = append(p.members, member{csv: csv, verdict: p.snapshot.Decide(csv)})
	}

	scopes := p.scopes()

	if p.known {
		for i := range scopes {
			scopes[i].Listed = nil // Somebody else annotates the operator with its namespaces, and nobody waits for Ambit to do so.
		}
	}

	planned := p.permissions(scopes)
	onlyRevoke(planned, p.known)

	return planned
}

// revoke applies a plan that revocation made.
func (p *state) revoke(ctx context.Context, planned *plan.Plan) *apply.Outcome {
	if p.known {
		p.forgetWebhooks(ctx, nil) // Whoever serves these kinds sets up webhooks of their own.
	}

	return p.Applier.ApplyWith(ctx, planned, p.identities(planned), p.as.Removes)
}

// onlyRevoke makes a plan one that grants nothing. With outdated, what is not as it should be is taken away: to correct it
// could grant something, and whoever serves these kinds grants what they say now.
func onlyRevoke(p *plan.Plan, outdated bool) {
	for i := range p.Scopes {
		s := &p.Scopes[i]

		for _, c := range s.Grant {
			// The ClusterRoles of a group hold no rules of their own, and users are bound to them.
			if outdated && c.Action != plan.Create && s.Scope.Owner.Kind != scope.KindGroup {
				s.Revoke = append(s.Revoke, plan.Change{
					Action: plan.Delete, Namespace: c.Namespace, Key: c.Key, Version: c.Version,
				})
			}
		}

		s.Grant = nil
	}
}
