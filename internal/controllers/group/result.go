package group

import (
	"errors"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
)

// Refused are the places in which something was refused, so that a change of permissions there leads to a plan.
func (p *state) Refused(out *apply.Outcome) map[string]struct{} {
	refused := maps.Clone(out.Refused(p.key.Namespace))

	if len(p.left) > 0 || slices.ContainsFunc(p.userRoles, func(err error) bool { return apply.Classify(err) == apply.Refused }) {
		refused[""] = struct{}{}
	}

	for i := range p.members {
		if p.members[i].refusal == "" && len(p.members[i].undeleted) == 0 {
			continue
		}

		refused[p.found.namespace] = struct{}{}

		for _, place := range p.members[i].lacks {
			refused[place.Namespace] = struct{}{}
		}
	}

	return refused
}

// result says when to plan again: after a failure that may pass by itself, later each time. What is due at a time is asked for
// here where something failed: with an error, controller-runtime knows only the back-off, and with a time, no back-off, which may
// be minutes sooner.
func (p *state) result(out *apply.Outcome, err error) (reconcile.Result, error) {
	err = errors.Join(append(p.errs, err)...)
	failed, transient := out.Failed(nil)

	var due time.Duration
	if !p.nextCheck.IsZero() {
		due = max(time.Second, p.nextCheck.Sub(p.facts.Now))
	}

	if !failed && !p.again && err == nil {
		return reconcile.Result{RequeueAfter: due}, nil
	}

	if due > 0 {
		p.Changes.Again(p.key, p.Time().Add(due))
	}

	if err != nil && apply.Classify(err) == apply.Transient {
		return reconcile.Result{}, err
	}

	if transient != nil {
		return reconcile.Result{}, transient
	}

	return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
}
