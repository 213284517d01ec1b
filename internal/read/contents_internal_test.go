package read

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// TestContentsAreShared holds that what is the same is kept once, whoever asks, and that what differs is not taken for it.
func TestContentsAreShared(t *testing.T) {
	t.Parallel()

	var (
		c    contents
		asks sync.WaitGroup
	)

	is := facts.Content{Owner: "o", Source: "s", Slot: "a", Named: true, Rules: `[{"verbs":["get"]}]`}
	found := make([]*facts.Content, 8)

	for i := range found {
		asks.Go(func() {
			same := is
			found[i] = c.one(&same)
		})
	}

	asks.Wait()

	for i := range found {
		if found[i] != found[0] || *found[i] != is {
			t.Errorf("%d: %+v at %p, and %+v at %p", i, *found[i], found[i], *found[0], found[0])
		}
	}

	for _, other := range []facts.Content{
		{}, {Owner: "o", Source: "s", Slot: "a", Rules: is.Rules},
		{Owner: "o", Source: "s", Slot: "a", Named: true, Rules: is.Rules, Owners: "1"},
		{Owner: "o", Source: "s", Slot: "a", Named: true, Rules: is.Rules, RoleKind: "Role"},
	} {
		if got := c.one(&other); *got != other {
			t.Errorf("%+v became %+v", other, *got)
		}
	}
}

// TestContentsKeepNothing holds that what no record uses goes: whoever administers a namespace may write Roles that differ for as
// long as they like.
func TestContentsKeepNothing(t *testing.T) {
	t.Parallel()

	var c contents

	gone := weak.Make(c.one(&facts.Content{Slot: "used by nobody"}))

	for i := range maxContents + 2 {
		c.one(&facts.Content{Slot: strconv.Itoa(i)})
	}

	if len(c.known) > maxContents {
		t.Errorf("%d are known", len(c.known))
	}

	for began := time.Now(); gone.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("what nobody uses stays in memory")
		}
	}
}
