package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

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
	// tripped is why nothing more is created in a namespace.
	tripped *cache.LRUExpireCache
	// silent are the namespaces in which a dry run was not answered, and none is made for a while.
	silent *cache.LRUExpireCache
	// late is why some of the detached writes in operator namespaces failed that have ended since.
	late *cache.LRUExpireCache

	mu sync.Mutex
	// detached are the writes for which nobody waits any more.
	detached map[writeKey]*underWay
	// ended are the detached restarts, by reconcile key, that were made since a plan began to be applied last, and the writes that
	// take permissions away and may have been made. The plan after that may have been made without knowing of them.
	ended map[scope.Key]map[writeKey]struct{}
	// made are the detached writes that have succeeded and of which nobody was told yet.
	made map[scope.Key][]LateWrite
}

func newBreaker() *breaker {
	return &breaker{
		tripped: cache.NewLRUExpireCache(maxReviews), silent: cache.NewLRUExpireCache(maxReviews),
		late: cache.NewLRUExpireCache(maxReviews), detached: map[writeKey]*underWay{}, ended: map[scope.Key]map[writeKey]struct{}{},
		made: map[scope.Key][]LateWrite{},
	}
}

// of returns why a change is not tried now; nil if it is. What exists is always changed and deleted: that may be what takes
// permissions away.
func (h *breaker) of(c *plan.Change) error {
	if c.Action != plan.Create || c.Namespace == "" {
		return nil
	}

	if why, is := h.tripped.Get(c.Namespace); is {
		err, _ := why.(error) // Nothing else is in it.

		return attempted(c, err)
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

	took := time.Since(began)

	switch {
	case err == nil:
		h.tripped.Remove(c.Namespace)
	case took >= longTime && !errors.Is(err, context.Canceled):
		h.tripped.Add(c.Namespace, errors.Unwrap(err), backOff*took)
	}
}

// dryRun makes a dry run in a namespace, unless one was not answered there lately, or a write is under way there. A plan waits
// for its dry runs before it takes anything away, and makes one for each change that a review does not cover: so one that hangs
// is the last for as long as a write may hang. Then it is not known whether the change is refused, and the write is tried.
func (h *breaker) dryRun(namespace string, try func() error) error {
	if _, is := h.silent.Get(namespace); is || h.hasDetached(namespace) {
		return ErrUnanswered
	}

	began := time.Now()

	err := try()
	if err != nil && time.Since(began) >= memberWait {
		h.silent.Add(namespace, nil, writeLimit)
	}

	return err
}

// attempted says of an error which change it is about.
func attempted(c *plan.Change, err error) error {
	return fmt.Errorf("%s %s %s/%s: %w", c.Action, c.Key.Kind, c.Namespace, c.Key.Name, err)
}
