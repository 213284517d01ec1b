package manager

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// softMemory is how much memory a manager takes before it collects garbage more often. What somebody writes may be megabytes,
	// of which little is kept, and garbage that is let grow to as much again as is kept is most of a peak.
	softMemory = 128 << 20
	// lookAtMemory is how often it is looked at what is kept.
	lookAtMemory = 10 * time.Second
	liveHeap     = "/gc/heap/live:bytes"
)

// boundMemory keeps garbage small where little is kept, and to a fifth of what is kept elsewhere, so that a manager of a large
// cluster does not collect it all the time. GOMEMLIMIT says otherwise.
func boundMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}

	sample := []metrics.Sample{{Name: liveHeap}}

	for {
		limit := int64(softMemory)

		if metrics.Read(sample); sample[0].Value.Kind() == metrics.KindUint64 {
			live := int64(sample[0].Value.Uint64()) //nolint:gosec // No heap has as many bytes.
			limit = max(limit, live+live/5)
		}

		debug.SetMemoryLimit(limit)

		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAtMemory):
		}
	}
}
