package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// maxLooks is how often it is looked at namespaces that the looker did not come to, for want of time.
const maxLooks = 10

// lookForWaiting finds, with the caller's rights, what waits for finalizers in the namespaces that would leave.
func (v *view) lookForWaiting(ctx context.Context, plans []plan.Plan) {
	v.waiting = map[facts.WaitingKey]facts.Waiting{}

	var (
		keys      []facts.WaitingKey
		questions []waiting.Question
	)

	for i := range plans {
		for j := range plans[i].Scopes {
			s := &plans[i].Scopes[j]
			for _, l := range s.Leaves() {
				keys = append(keys, s.WaitingKey(l.Namespace))
				questions = append(questions, waiting.Question{
					Namespace: l.Namespace, Ending: l.Terminating, Grants: s.Grants(), As: func(string) string { return "" },
				})
			}
		}
	}

	looker := waiting.New(v.config)

	for range maxLooks {
		if len(questions) == 0 {
			return
		}

		answers := looker.Look(ctx, questions)

		var (
			laterKeys []facts.WaitingKey
			later     []waiting.Question
		)

		for i := range questions {
			if found, looked := answers[i]; looked {
				v.waiting[keys[i]] = found
			} else {
				laterKeys, later = append(laterKeys, keys[i]), append(later, questions[i])
			}
		}

		keys, questions = laterKeys, later
	}
}

// tellWaiting names what waits in the namespaces that leave, and what nobody will take a finalizer off any more.
func tellWaiting(v *view, f *predict.ScopePrediction, out *PlanScope) {
	names := slices.Clone(out.Leaves)
	for i := range out.Failed { // Those that are being deleted are among them.
		names = append(names, out.Failed[i].Namespace)
	}

	for _, name := range names {
		found, looked := v.waiting[f.WaitingKey(name)]
		if !looked {
			continue
		}

		stay := "permissions stay until nothing waits"
		if found.Count == 0 {
			stay = "if something does, permissions stay" // The manager may see more than the caller, or less.
		}

		if found.Any() {
			out.Finishes = append(out.Finishes, PlanFinish{Namespace: name, Message: fmt.Sprintf("%s; %s, for %s at most",
				report.Waits(&found, true), stay, v.manager.FinishGrace)})
		}

		if found.KeptCount > 0 {
			out.Says = append(out.Says, fmt.Sprintf("in %s, %s have a finalizer and are not being deleted; once the operators are gone, "+
				"nobody takes it off", name, report.Listed(found.Kept, found.KeptCount)))
		}
	}
}
