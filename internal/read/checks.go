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
	due dueAccesses
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

	if d.place > 0 {
		heap.Remove(&c.due, d.place-1)
	}
}

// take takes out the next access that is due; or it says when one will be.
func (c *checks) take() (d *access, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.due) == 0 {
		return nil, time.Hour
	}

	if wait = time.Until(c.due[0].next); wait > 0 {
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

// dueAccesses are a heap, with the next one first.
type dueAccesses []*access

// Len, Less, Swap, Push and Pop are those of a heap. Each access knows its place, counted from one.
func (a *dueAccesses) Len() int { return len(*a) }

// Less is explained at Len.
func (a *dueAccesses) Less(i, j int) bool { return (*a)[i].next.Before((*a)[j].next) }

// Swap is explained at Len.
func (a *dueAccesses) Swap(i, j int) {
	all := *a
	all[i], all[j] = all[j], all[i]
	all[i].place, all[j].place = i+1, j+1
}

// Push is explained at Len.
func (a *dueAccesses) Push(x any) {
	d, _ := x.(*access)
	*a = append(*a, d)
	d.place = len(*a)
}

// Pop is explained at Len.
func (a *dueAccesses) Pop() any {
	last := len(*a) - 1
	d := (*a)[last]
	(*a)[last], *a = nil, (*a)[:last]
	d.place = 0

	return d
}
