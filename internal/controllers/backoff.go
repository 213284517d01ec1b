package controllers

import (
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// firstRetry and lastRetry bound the time until something that failed is tried again without a change.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// backOff says when what failed is tried again: each time after twice as long. Workqueue's own counts every failure. A plan that
// an event asks for fails as well while the cause lasts, so a second with many events would put the next try minutes away. Here
// such a plan leaves the next try where it was, and what lasted for a while is tried again within as long.
type backOff struct {
	mu    sync.Mutex
	now   func() time.Time
	items map[scope.Key]*tries
}

// tries are those of one request. The next is due at a time, wait after the one before.
type tries struct {
	count int
	wait  time.Duration
	due   time.Time
}

func newBackOff() *backOff {
	return &backOff{now: time.Now, items: map[scope.Key]*tries{}}
}

// When returns how long to wait after a failure.
func (b *backOff) When(key scope.Key) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()

	now, t := b.now(), b.items[key]

	switch {
	case t == nil:
		t = &tries{wait: firstRetry}
		b.items[key] = t
	case now.Before(t.due):
		return t.due.Sub(now)
	default:
		t.wait = min(2*t.wait, lastRetry)
	}

	t.count++
	t.due = now.Add(t.wait)

	return t.wait
}

// Forget is called after a success, and after a change that may be what a request was waiting for.
func (b *backOff) Forget(key scope.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()

	delete(b.items, key)
}

// NumRequeues returns how many tries were asked for since the last success.
func (b *backOff) NumRequeues(key scope.Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	if t := b.items[key]; t != nil {
		return t.count
	}

	return 0
}
