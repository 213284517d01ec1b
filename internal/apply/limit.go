package apply

import (
	"context"
	"sync"
	"time"
)

// askedFor is a context that ends, with context.DeadlineExceeded, once a write has taken as long as it may. It does not count the
// time for which the write waits for its turn, because the API server has no room; a deadline of the standard library's would.
type askedFor struct {
	context.Context //nolint:containedctx // It is a context, derived from this one.
	// done is not the parent's: what is derived from this context ends with its own error.
	done chan struct{}

	mu  sync.Mutex
	err error
}

// withLimit returns a context that ends after a time, in which it is not counted how long the write is held back. The function is
// to be called once the write has ended.
func withLimit(parent context.Context, held *heldBack, limit time.Duration) (context.Context, context.CancelFunc) {
	a := &askedFor{Context: parent, done: make(chan struct{})}

	go a.expire(held, limit)

	return a, func() { a.end(context.Canceled) }
}

// Done implements context.Context.
func (a *askedFor) Done() <-chan struct{} { return a.done }

// Err implements context.Context.
func (a *askedFor) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.err
}

func (a *askedFor) expire(held *heldBack, limit time.Duration) {
	began := time.Now()

	for left := limit; left > 0; left = limit + held.soFar() - time.Since(began) {
		select {
		case <-a.done:
			return
		case <-a.Context.Done():
			a.end(a.Context.Err())

			return
		case <-time.After(left):
		}
	}

	a.end(context.DeadlineExceeded)
}

// end ends the context, unless it has ended.
func (a *askedFor) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.err == nil {
		a.err = err
		close(a.done)
	}
}
