package namespacescope

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/plan"
)

// unheld remembers, for each operator namespace, what became of scopes that were served before and that cannot be held any more,
// because somebody took their finalizer off and it cannot be put on again, and of those that were changed just when they were to
// be held. What the former have would go for an API server that fails for a moment, and the latter may be held the next time, so
// the others wait for them: all together for as long as anything waits that is to be revoked, so that nobody gains by scopes that
// take turns, or by one that is changed all the time.
type unheld struct{ memory[unheldIn] }

type unheldIn struct {
	// since is when the others began to wait; zero while they do not.
	since time.Time
	// over are the scopes for which nobody waits any more, until they are held again.
	over map[types.UID]struct{}
}

// until is for how long the other scopes of an operator namespace wait for those that could not be held just now; zero if they do
// not wait.
func (u *unheld) until(operatorNamespace string, scopes []resource, now time.Time) time.Time {
	was, is := u.get(operatorNamespace), unheldIn{over: map[types.UID]struct{}{}}

	for i := range scopes {
		uid := scopes[i].GetUID()
		if _, over := was.over[uid]; over {
			is.over[uid] = struct{}{}
		} else if scopes[i].contested || scopes[i].status.ObservedGeneration > 0 {
			is.since = was.since
			if is.since.IsZero() {
				is.since = now
			}
		}
	}

	var end time.Time
	if !is.since.IsZero() {
		end = is.since.Add(plan.RevocationPatience)
	}

	if !end.IsZero() && !now.Before(end) {
		end, is.since = time.Time{}, time.Time{}
		for i := range scopes {
			is.over[scopes[i].GetUID()] = struct{}{}
		}
	}

	u.set(operatorNamespace, is, !end.IsZero() || len(is.over) > 0)

	return end
}
