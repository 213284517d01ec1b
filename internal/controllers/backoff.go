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

// backOff says when what failed is tried again: each time after twice as long. The rate limiters of workqueue count every
// failure. While the cause lasts, a plan that an event asks for fails as well, so a second with many events would put the next
// retry minutes away. Here such a plan leaves the next retry where it was, so a failure is retried after about as long again as
// it has lasted.
type backOff struct {
	mu    sync.Mutex
	now   func() time.Time
	items map[scope.Key]*tries
}

// tries are the retries of one request. The next one is due at due, which is wait after the last failure that counted.
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

// NumRequeues returns how many retries were scheduled since the last call of Forget.
func (b *backOff) NumRequeues(key scope.Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	if t := b.items[key]; t != nil {
		return t.count
	}

	return 0
}
