package predict

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// webhooks notes the webhook configurations that would be limited to other members than they are, once the lists are what they
// end as: as in the applier, one waits for its list.
func (g *simulated) webhooks(p *plan.Plan) {
	for i := range p.Webhooks {
		w := &p.Webhooks[i]

		var members []string

		if !w.IsTakenBack() {
			members = g.membersOf(p, w.List)
			if len(members) == 0 {
				continue
			}
		}

		if w.Resolve(members) == nil {
			continue
		}

		note := Injection{Target: w.Target(), Action: plan.PatchInjection, Webhook: true, Members: members}
		if w.Scope >= 0 {
			note.Owner = p.Scopes[w.Scope].Scope.Owner
			note.Refusal = g.authorizer.OperatorNamespace(p.Scopes[w.Scope].Scope, authority.OfWebhooks())
		}

		g.out.Injections = append(g.out.Injections, note)
	}
}

// membersOf are the members that a list names in the end; none where it cannot be written.
func (g *simulated) membersOf(p *plan.Plan, list string) []string {
	refused := slices.ContainsFunc(g.out.Lists, func(l List) bool { return l.Name == list && l.Refusal != nil })

	for i := range p.Lists {
		if l := &p.Lists[i]; l.Name == list && !refused {
			w := g.resolve(p, l)
			if w.Action != plan.BlockedList {
				return w.Members
			}
		}
	}

	return nil
}
