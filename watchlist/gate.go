package watchlist

import "sync"

// gate counts who is inside. Once it is closed nobody enters any more, and whoever closes it waits for those that are inside. It
// is not a read lock, because a handler that is inside reads the cache, and would wait for the writer that waits for it.
type gate struct {
	inside sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if !g.closed {
		g.inside.Add(1)
	}

	return !g.closed
}

func (g *gate) exit() { g.inside.Done() }

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()

	g.inside.Wait()
}
