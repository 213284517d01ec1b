package apply

import (
	"maps"
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// grantLife is how long it is remembered when a permission was written for a reconcile key.
const grantLife = time.Minute

// Granted is when a permission was last written for a reconcile key; zero when none was since Ambit began.
func (a *Applier) Granted(key scope.Key) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.granted[key]
}

// Granting are the namespaces in which a permission is being written for a reconcile key that nobody waits for any more. It is
// asked before Granted, which knows of those that have ended since.
func (a *Applier) Granting(key scope.Key) map[string]struct{} { return a.breaker.granting(key) }

// PlanAgain is when to plan again after a plan was applied that was made from these facts, although nothing changes; zero when
// never. What was replaced goes once the API server's authorizer knows what came in its place.
func (a *Applier) PlanAgain(p *plan.Plan, f *facts.Facts, out *Outcome) time.Time {
	again := plan.Sooner(p.Again, out.PruneAt)
	replaces := slices.ContainsFunc(p.Scopes, func(s plan.ScopePlan) bool { return len(s.Replaced) > 0 })

	if granted := a.Granted(p.Key); (replaces || len(f.Legacy) > 0) && granted.After(f.Granted) {
		again = plan.Sooner(again, granted.Add(plan.Propagation))
	}

	return again
}

// noteGrants notes when permissions were written. A refused write does not count.
func (r *run) noteGrants() {
	for i := range r.plan.Scopes {
		if results := r.out.Scopes[i].Results; len(r.plan.Scopes[i].Grant) > 0 && results[Created]+results[Configured] > 0 {
			r.noteGranted(r.plan.Key)
		}
	}
}

func (a *Applier) noteGranted(key scope.Key) {
	now := a.Now()

	a.mu.Lock()
	defer a.mu.Unlock()

	a.granted[key] = now
	// What was granted long ago is known to every authorizer, as what was granted before Ambit began.
	maps.DeleteFunc(a.granted, func(_ scope.Key, at time.Time) bool { return now.Sub(at) > grantLife })
}

// noteWritten notes in which namespaces permissions were written for a reconcile key: whoever writes there for somebody may hold
// more or less by it.
func (a *Applier) noteWritten(key scope.Key, namespaces map[string]struct{}) {
	if len(namespaces) == 0 {
		return
	}

	now := a.Now()
	for namespace := range namespaces {
		a.writtenAt.Add(namespace, now, reviewLife)
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if a.wroteFor[key] == nil {
		a.wroteFor[key] = map[string]struct{}{}
	}

	maps.Copy(a.wroteFor[key], namespaces)
}

// TakeWritten returns the namespaces in which plans for a reconcile key wrote permissions since it was called last.
func (a *Applier) TakeWritten(key scope.Key) map[string]struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()

	out := a.wroteFor[key]
	delete(a.wroteFor, key)

	return out
}

// learnedAt is when the API server's authorizer has learned of what plans wrote last in a namespace.
func (a *Applier) learnedAt(namespace string) time.Time {
	written, _ := a.writtenAt.Get(namespace)
	at, _ := written.(time.Time) // Nothing else is in it.

	return at.Add(plan.Propagation)
}
