package watchlist

import "sync"

// gate counts who is inside. Once it is closed nobody enters any more, and whoever closes it waits for those that are inside. It
// is not a read lock, because a handler that is inside reads the cache, and would wait for the writer that waits for it.
type gate struct {
	mu     sync.Mutex
	empty  *sync.Cond
	inside int
	closed bool
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.closed {
		return false
	}

	g.inside++

	return true
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.inside--
	if g.empty != nil {
		g.empty.Broadcast()
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.closed = true
	if g.empty == nil {
		g.empty = sync.NewCond(&g.mu)
	}

	for g.inside > 0 {
		g.empty.Wait()
	}
}
