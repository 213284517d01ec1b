package namespacescope

import (
	"context"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// left is what is remembered for one operator namespace: since when namespaces have left that a list still names, and what was
// found in them. Both are forgotten once a list names none of these. The times serve as a bound only, since the status has them,
// too.
type left struct {
	since map[facts.WaitingKey]time.Time
	found map[facts.WaitingKey]look
}

type look struct {
	waiting facts.Waiting
	at      time.Time
}

// planFinishing plans. Where namespaces left, it first finds out what waits in them for the operators, and plans with that. This
// costs requests, so it is done only while something leaves.
func (r *Reconciler) planFinishing(ctx context.Context, scopes []scope.Scope, f *facts.Facts) plan.Plan {
	operatorNamespace := f.Key.Namespace
	known := r.looked.get(operatorNamespace)

	f.Finishing = known.since
	p := plan.New(scopes, f)
	is := left{since: p.LeftSince(), found: map[facts.WaitingKey]look{}}

	defer r.looked.set(operatorNamespace, is, len(is.since) > 0)

	if len(is.since) == 0 {
		return p
	}

	for waits := range is.since {
		if found, looked := known.found[waits]; looked {
			is.found[waits] = found
		}
	}

	f.Unanswered = r.look(ctx, &p, f.Now, is.found)

	f.Waiting = make(map[facts.WaitingKey]facts.Waiting, len(is.found))
	for waits, found := range is.found {
		f.Waiting[waits] = found.waiting
	}

	return plan.New(scopes, f)
}

// look asks what waits in the namespaces where an answer is due, first in those where nobody has asked yet, and returns why there
// is none.
func (r *Reconciler) look(
	ctx context.Context, p *plan.Plan, now time.Time, found map[facts.WaitingKey]look,
) map[facts.WaitingKey]string {
	var (
		keys      []facts.WaitingKey
		questions []waiting.Question
	)

	ask := func(again bool) {
		for i := range p.Scopes {
			s := &p.Scopes[i]
			grants := s.Grants()

			for _, l := range s.Leaves {
				key := s.WaitingKey(l.Namespace)

				before, looked := found[key]
				if looked != again || l.Over || looked && now.Sub(before.at) < l.LookAgain(now) {
					continue
				}

				keys = append(keys, key)
				questions = append(questions, waiting.Question{
					Namespace: l.Namespace, Ending: l.Terminating, Grants: grants, As: r.lookAs(s.Scope.Key.Namespace),
				})
			}
		}
	}

	ask(false)
	ask(true)

	answers, unanswered := r.Finder.Find(ctx, questions)
	for i, waits := range answers {
		found[keys[i]] = look{waits, now}
	}

	out := make(map[facts.WaitingKey]string, len(unanswered))
	for i, why := range unanswered {
		out[keys[i]] = why
	}

	return out
}

// lookAs says as which account Ambit lists what an account may change: as that account. Where Ambit acts as another account in
// members, or may act as none, it lists as the writer there, since nobody may write a rule that they do not hold.
func (r *Reconciler) lookAs(operatorNamespace string) func(account string) string {
	if !r.Writers.IsConfined() {
		return func(account string) string { return scope.AccountUser(operatorNamespace, account) }
	}

	user := ""
	if name := r.Writers.GrantedAccount(operatorNamespace); name != "" {
		user = scope.AccountUser(operatorNamespace, name)
	}

	return func(string) string { return user }
}
