// Package plantest says of plans what only tests ask.
package plantest

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/plan"
)

// IsEmpty says whether a plan has nothing to do.
func IsEmpty(p *plan.Plan) bool {
	for i := range p.Scopes {
		if !p.Scopes[i].Settled() {
			return false
		}
	}

	pending, listed := p.Pending(), map[string][]string{}

	for i := range p.Lists {
		w := plan.ResolveList(&p.Lists[i], pending, nil)
		if w.Action != plan.KeepList {
			return false
		}

		listed[p.Lists[i].Name] = w.Members
	}

	return len(p.Restarts) == 0 && len(p.Orphans) == 0 && len(p.Injections) == 0 &&
		!slices.ContainsFunc(p.Webhooks, func(w plan.WebhookPlan) bool { return plan.ResolveWebhook(&w, listed[w.List]) != nil })
}
