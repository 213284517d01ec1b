package namespacescope

import (
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// finished says whether nothing is left of a deleted scope: this plan, made after all earlier writes, has no more of them for it,
// and waits for none. What waits for others is no reason to stay.
// A restart that the API server refuses does not hold the scope; it was reported in an event.
func finished(p *plan.Plan, out *apply.Outcome, index int) bool {
	s := &p.Scopes[index]
	if !s.Settled() || s.Waits {
		return false
	}

	l := out.List(p, s.Scope.WatchList)
	if l != nil && l.Write.Action != plan.KeepList && l.Write.Action != plan.BlockedList {
		return false
	}

	if isInjected(p, index) || isToDisown(p, out) {
		return false
	}

	for i := range p.Restarts {
		err := out.Restarts[i].Err
		if slices.Contains(p.Restarts[i].Scopes, index) && (err == nil || errors.Is(err, apply.ErrUnanswered)) {
			return false
		}
	}

	return true
}

// isInjected says whether something is injected still for a scope, or whether that is not known yet. What could not be taken
// back holds the scope, as what it projected does.
func isInjected(p *plan.Plan, index int) bool {
	return p.Scopes[index].Scope.Injected && !p.CSVsDecided ||
		slices.ContainsFunc(p.Injections, func(in plan.Injection) bool { return in.Scope == index && in.IsTakenBack() }) ||
		slices.ContainsFunc(p.Webhooks, func(w plan.WebhookPlan) bool { return w.Scope == index && w.IsTakenBack() })
}

// isToDisown says whether the API server still knows a write of the injector, and will not for long: nobody comes back for the
// record of it once the scopes are gone. One that nobody may take off, or whose answer does not come, keeps no scope.
func isToDisown(p *plan.Plan, out *apply.Outcome) bool {
	for i := range p.Injections {
		err := out.Injections[i].Err
		if p.Injections[i].Action == plan.DisownInjection && err != nil && !errors.Is(err, apply.ErrUnanswered) {
			return true
		}
	}

	return false
}

// result says when to plan again. A deletion that made progress continues at once, also beside a scope whose status could not be
// written. What may be late of scopes that are left out is written by the next plan, which begins soon.
func result(p *plan.Plan, out *apply.Outcome, late bool, err error) (reconcile.Result, error) {
	r, err := generic.Result(out, err)
	deleting := slices.ContainsFunc(p.Scopes, func(s plan.ScopePlan) bool { return s.Scope.Deleting() })

	if failed, _ := out.Failed(nil); !failed && out.Wrote() && deleting {
		r.RequeueAfter = time.Millisecond
	} else if late && err == nil && r.IsZero() {
		r.RequeueAfter = lateScopes
	}

	return r, err
}
