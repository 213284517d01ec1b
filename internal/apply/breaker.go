package apply

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/internal/plan"
)

const (
	// longTime is what the API server takes to refuse a write only where something hangs, such as an admission webhook.
	longTime = 3 * time.Second
	// backOff is how many times as long nothing more is made in a namespace where that happened.
	backOff = 3
)

// breaker remembers the namespaces in which making an object took long and failed. Every further object would take as long,
// and all that the operator namespace's other members wait for would wait for it. It is a back-off: who forgets it, as a
// manager that begins anew, waits once more.
type breaker struct {
	mu    sync.Mutex
	now   func() time.Time
	until map[string]hang
	// away are the writes for which nobody waits any more.
	away map[awayWrite]*underWay
	// late is why some of those in operator namespaces failed that have ended since.
	late map[awayWrite]hang
}

// hang is why nothing is made in a namespace, and until when.
type hang struct {
	err   error
	until time.Time
}

func newBreaker(now func() time.Time) *breaker {
	return &breaker{now: now, until: map[string]hang{}, away: map[awayWrite]*underWay{}, late: map[awayWrite]hang{}}
}

// of returns why a change is not tried now; nil if it is. What exists is always changed and deleted: that may be what takes
// permissions away.
func (h *breaker) of(c *plan.Change) error {
	if c.Action != plan.Create || c.Namespace == "" {
		return nil
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if hang, found := h.until[c.Namespace]; found && h.now().Before(hang.until) {
		return attempted(c, hang.err)
	}

	if h.keepsWaiting(c.Namespace) {
		return attempted(c, errUnanswered)
	}

	return nil
}

// note takes in what became of a change that began at a time.
func (h *breaker) note(c *plan.Change, began time.Time, err error) {
	if c.Action != plan.Create || c.Namespace == "" {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	now := h.now()
	took := now.Sub(began)

	switch {
	case err == nil:
		delete(h.until, c.Namespace)
	case took >= longTime && !errors.Is(err, context.Canceled):
		maps.DeleteFunc(h.until, func(_ string, past hang) bool { return now.After(past.until) })
		h.until[c.Namespace] = hang{err: errors.Unwrap(err), until: now.Add(backOff * took)}
	}
}

// attempted says of an error which change it is about.
func attempted(c *plan.Change, err error) error {
	return describe(err, "%s %s %s/%s", c.Action, c.Key.Kind, c.Namespace, c.Key.Name)
}
