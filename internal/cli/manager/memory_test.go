package manager

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// TestTheBoundFollowsWhatIsKept: garbage is half of what is kept, from the collection on that sees it, and little again
// afterwards.
func TestTheBoundFollowsWhatIsKept(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })

	const large = 200 << 20

	boundMemory()
	bounded(t, softMemory, softMemory)

	kept := make([]byte, large)

	bounded(t, large+large/2, 2*large)
	runtime.KeepAlive(kept) // And no longer.
	bounded(t, softMemory, softMemory)

	for _, name := range append([]string{liveHeap, allMemory}, heap...) {
		if !slices.ContainsFunc(metrics.All(), func(d metrics.Description) bool {
			return d.Name == name && d.Kind == metrics.KindUint64
		}) {
			t.Errorf("this version of Go does not measure %s", name)
		}
	}

	t.Setenv("GOMEMLIMIT", "1GiB")
	collect() // What had begun before ends with this.
	debug.SetMemoryLimit(math.MaxInt64)
	boundMemory()
	collect()
	bounded(t, math.MaxInt64, math.MaxInt64)
}

// collect collects garbage, and lets be done what waits for that.
func collect() {
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
}

// bounded waits until the limit is within bounds after a collection.
func bounded(t *testing.T, least, most int64) {
	t.Helper()

	limit := int64(0)

	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		runtime.GC()

		if limit = debug.SetMemoryLimit(-1); limit >= least && limit <= most {
			return
		}
	}

	t.Fatalf("the limit is %d MiB, not %d to %d", limit>>20, least>>20, most>>20)
}
