package manager

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
)

const (
	// softMemory is how much memory a manager takes before it collects garbage more often. An object that somebody writes may have
	// megabytes, of which little is kept. Go by default lets garbage grow to as much again as is kept, which would be most of a
	// peak.
	softMemory = 64 << 20
	liveHeap   = "/gc/heap/live:bytes"
	allMemory  = "/memory/classes/total:bytes"
)

// heap is the memory that holds objects, garbage, and nothing yet or any more, of all that the limit is about.
var heap = []string{
	"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes",
	"/memory/classes/heap/released:bytes",
}

// boundMemory keeps garbage small where little is kept, and to half of what is kept elsewhere, so that a manager of a large
// cluster does not collect it all the time. It goes by what the last collection kept, and looks again after the next: a manager
// that lists a large cluster keeps a hundred megabytes within a second. If GOMEMLIMIT is set, it decides instead.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}

	now := measured(slices.Concat([]string{liveHeap, allMemory}, heap)...)
	live, besides := now[0], now[1]

	// Stacks and what the runtime itself needs count for the limit, too, and would take the room of garbage.
	for _, of := range now[2:] {
		besides -= of
	}

	limit := max(softMemory, live+live/2+max(0, besides))

	if limit != debug.SetMemoryLimit(-1) { // Setting it stops the world.
		debug.SetMemoryLimit(limit)
	}

	// Nothing refers to it, so the next collection takes it, and says so.
	runtime.AddCleanup(new(collected), func(struct{}) { boundMemory() }, struct{}{})
}

// measured are measurements of the runtime, all of one moment; 0 where this version of Go does not take one.
func measured(names ...string) []int64 {
	samples, out := make([]metrics.Sample, len(names)), make([]int64, len(names))
	for i, name := range names {
		samples[i].Name = name
	}

	metrics.Read(samples)

	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			out[i] = int64(samples[i].Value.Uint64()) //nolint:gosec // No process has as many bytes.
		}
	}

	return out
}

// collected has a pointer and a size, so that it is no part of a block of tiny objects, which live as long as the last of them.
type collected struct{ _ [2]*collected }
