package read

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// checksAtOnce is how many accesses of one operator namespace are checked at once.
const checksAtOnce = 16

// checks are the accesses of one operator namespace that are to be checked. Whoever may write a scope or an OperatorGroup there
// names as many namespaces as they like, and none of them needs to exist: so no access has a goroutine of its own before somebody
// let Ambit in, and those of other operator namespaces do not wait for them. What nobody needs any more is taken out, which
// client-go's queues cannot do.
type checks struct {
	wake chan struct{}

	mu  sync.Mutex
	due pile[*access]
}

// add has an access checked once some time has passed.
func (c *checks) add(d *access, in time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	d.next = time.Now().Add(in)

	heap.Push(&c.due, d)
	wake(c.wake)
}

// drop takes out an access that nobody needs any more.
func (c *checks) drop(d *access) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if d.at > 0 {
		heap.Remove(&c.due, d.at-1)
	}
}

// take takes out the next access that is due; or it says when one will be.
func (c *checks) take() (d *access, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.due.Len() == 0 {
		return nil, time.Hour
	}

	if wait = time.Until(c.due.all[0].next); wait > 0 {
		return nil, wait
	}

	d, _ = heap.Pop(&c.due).(*access)

	return d, 0
}

// run checks what is due, until the context ends.
func (c *checks) run(ctx context.Context, check func(*access)) {
	slots := make(chan struct{}, checksAtOnce)

	for ctx.Err() == nil {
		d, wait := c.take()
		if d == nil {
			select {
			case <-ctx.Done():
			case <-c.wake:
			case <-time.After(wait):
			}

			continue
		}

		slots <- struct{}{}

		go func() {
			check(d)
			<-slots
		}()
	}
}
