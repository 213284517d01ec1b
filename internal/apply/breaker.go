package apply

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// longTime is what the API server takes to refuse a write only where something hangs, such as an admission webhook.
	longTime = 3 * time.Second
	// backOff is for how many times the duration of such a write nothing more is created in its namespace.
	backOff = 3
)

// breaker remembers the namespaces in which making an object took long and failed. Every further object would take as long, and
// would delay the other members of the operator namespace. It is a back-off, so a manager that restarts loses nothing but waits
// once more.
type breaker struct {
	mu    sync.Mutex
	now   func() time.Time
	until map[string]trip
	// silent are the namespaces in which a dry run was not answered, and until when none is made there.
	silent map[string]time.Time
	// detached are the writes for which nobody waits any more.
	detached map[writeKey]*underWay
	// late is why some of the detached writes in operator namespaces failed that have ended since.
	late map[writeKey]trip
	// ended are the detached restarts, by reconcile key, that were made since a plan began to be applied last, and the writes that
	// take permissions away and may have been made. The plan after that may have been made without knowing of them.
	ended map[scope.Key]map[writeKey]struct{}
	// made are the detached writes that have succeeded and of which nobody was told yet.
	made map[scope.Key][]LateWrite
}

// trip is why nothing is made in a namespace, and until when.
type trip struct {
	err   error
	until time.Time
}

func newBreaker(now func() time.Time) *breaker {
	return &breaker{
		now: now, until: map[string]trip{}, silent: map[string]time.Time{},
		detached: map[writeKey]*underWay{}, late: map[writeKey]trip{}, ended: map[scope.Key]map[writeKey]struct{}{},
		made: map[scope.Key][]LateWrite{},
	}
}

// of returns why a change is not tried now; nil if it is. What exists is always changed and deleted: that may be what takes
// permissions away.
func (h *breaker) of(c *plan.Change) error {
	if c.Action != plan.Create || c.Namespace == "" {
		return nil
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if tripped, found := h.until[c.Namespace]; found && h.now().Before(tripped.until) {
		return attempted(c, tripped.err)
	}

	if h.hasDetached(c.Namespace) {
		return attempted(c, ErrUnanswered)
	}

	return nil
}

// note records the result of a change that began at a time.
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
		maps.DeleteFunc(h.until, func(_ string, past trip) bool { return now.After(past.until) })
		h.until[c.Namespace] = trip{err: errors.Unwrap(err), until: now.Add(backOff * took)}
	}
}

// dryRun makes a dry run in a namespace, unless one was not answered there lately, or a write is under way there. A plan waits
// for its dry runs before it takes anything away, and makes one for each change that a review does not cover: so one that hangs
// is the last for as long as a write may hang. Then it is not known whether the change is refused, and the write is tried.
func (h *breaker) dryRun(namespace string, try func() error) error {
	if h.isSilent(namespace) {
		return ErrUnanswered
	}

	began := h.now()
	err := try()

	if now := h.now(); err != nil && now.Sub(began) >= memberWait {
		h.mu.Lock()
		defer h.mu.Unlock()

		maps.DeleteFunc(h.silent, func(_ string, until time.Time) bool { return now.After(until) })
		h.silent[namespace] = now.Add(writeLimit)
	}

	return err
}

func (h *breaker) isSilent(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.now().Before(h.silent[namespace]) || h.hasDetached(namespace)
}

// attempted says of an error which change it is about.
func attempted(c *plan.Change, err error) error {
	return describe(err, "%s %s %s/%s", c.Action, c.Key.Kind, c.Namespace, c.Key.Name)
}
