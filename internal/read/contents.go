package read

import (
	"hash/maphash"
	"sync"
	"weak"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxContents is how many contents are found again. When there are more, all are forgotten at once, and what is read after that
// keeps its own.
const maxContents = 50_000

// contents keeps once what projected objects have in common with others. It is no reason for anything to stay in memory: whoever
// administers a namespace could fill it. The zero value is ready.
type contents struct {
	mu    sync.Mutex
	seed  maphash.Seed
	known map[uint64]weak.Pointer[facts.Content]
}

// one is the content that all records use.
func (c *contents) one(is *facts.Content) *facts.Content {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.known == nil {
		c.seed, c.known = maphash.MakeSeed(), map[uint64]weak.Pointer[facts.Content]{}
	}

	sum := maphash.Comparable(c.seed, *is)
	if known := c.known[sum].Value(); known != nil && *known == *is {
		return known
	}

	if len(c.known) >= maxContents {
		clear(c.known)
	}

	one := *is
	one.ScopeHash, one.Owner, one.Source, one.Slot = shared(is.ScopeHash), shared(is.Owner), shared(is.Source), shared(is.Slot)
	one.Owners, one.RoleGroup, one.RoleKind = shared(is.Owners), shared(is.RoleGroup), shared(is.RoleKind)
	one.Rules = shared(is.Rules)
	c.known[sum] = weak.Make(&one)

	return &one
}
