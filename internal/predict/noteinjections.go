package predict

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
)

func (n *notes) noteInjections(p *plan.Plan, out *apply.Outcome) {
	for i := range p.Injections {
		in := &p.Injections[i]
		n.noteInjection(p, in.Scope, &out.Injections[i], &Injection{
			Target: in.Target(), Action: in.Action, Rolls: in.Rolls(), Spec: in.Spec, Patch: in.Patch,
		})
	}
}

func (n *notes) noteWebhooks(p *plan.Plan, out *apply.Outcome) {
	for i := range p.Webhooks {
		w := &p.Webhooks[i]
		note := &Injection{Target: w.Target(), Action: plan.PatchInjection, Webhook: true}

		if list := out.List(p, w.List); list != nil {
			note.Members = list.Write.Members
		}

		n.noteInjection(p, w.Scope, &out.Webhooks[i], note)
	}
}

// noteInjection keeps one note for what is done to an operator.
func (n *notes) noteInjection(p *plan.Plan, index int, o *apply.WriteOutcome, note *Injection) {
	if o.Err == nil && o.Result != apply.Configured || o.Is(apply.Conflict) {
		return
	}

	if index >= 0 {
		note.Owner = p.Scopes[index].Scope.Owner
	}

	if o.Err != nil {
		note.Refusal = inOperatorNamespace(p, index, report.ReasonInjectionFailed, o.Err)
	}

	at := slices.IndexFunc(n.out.Injections, func(in Injection) bool {
		return in.Target == note.Target && in.Action == note.Action && in.Webhook == note.Webhook
	})
	if at < 0 {
		n.out.Injections = append(n.out.Injections, *note)
	} else if note.Webhook {
		n.out.Injections[at] = *note
	}
}
