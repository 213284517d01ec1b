package apply

import (
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// LateWrite is a restart or an injection that was made after an earlier plan had ceased to wait for it. The cluster shows it, so
// no later plan wants it, and nobody would be told.
type LateWrite struct {
	// Scopes are those that it was made for.
	Scopes []scope.Owner
	// Restart is what began again; nil for an injection.
	Restart *plan.Restart
	// Target is what was injected into, in the words of plan.Injection.Target; TakenBack says that an injection ended.
	Target    string
	TakenBack bool
}

// isWrite says whether there is something to tell.
func (l *LateWrite) isWrite() bool { return l.Restart != nil || l.Target != "" }

// takeMade returns the writes for a reconcile key that succeeded late, once.
func (h *breaker) takeMade(key scope.Key) []LateWrite {
	h.mu.Lock()
	defer h.mu.Unlock()

	made := h.made[key]
	delete(h.made, key)

	return made
}

// ownersOf are the scopes with these indexes. What belongs to none of the plan has a negative one.
func (r *run) ownersOf(indexes ...int) []scope.Owner {
	var owners []scope.Owner

	for _, i := range indexes {
		if i >= 0 {
			owners = append(owners, r.plan.Scopes[i].Scope.Owner)
		}
	}

	return owners
}
