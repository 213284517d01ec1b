package read_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-k8s/ambit/internal/read"
)

type counting struct{ n atomic.Int64 }

func (c *counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.n.Add(1)

	return &http.Response{StatusCode: http.StatusGone, Body: http.NoBody}, nil
}

// TestWatchesAreLimited: a few watches of the same things begin at once, and no more than that; others, and whatever is no watch,
// do not wait for them.
func TestWatchesAreLimited(t *testing.T) {
	t.Parallel()

	// A busy machine may need longer than a watch waits here just to ask for it.
	synctest.Test(t, func(t *testing.T) {
		const tries, atOnce = 50, 5

		asked := &counting{}
		limited := read.LimitWatches()(asked)

		ask := func(path string) {
			t.Helper()

			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()

			// What waits longer than it may is refused at once.
			response, err := limited.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			if err == nil {
				_ = response.Body.Close()
			}
		}

		began := time.Now()

		for range tries {
			ask("/api/v1/pods?watch=true")
		}

		if n, most := asked.n.Load(), int64(atOnce+time.Since(began)/time.Second); n < atOnce || n > most {
			t.Errorf("%d watches of %d began, want %d to %d", n, tries, atOnce, most)
		}

		before := asked.n.Load()

		for range tries {
			ask("/api/v1/pods")
		}

		ask("/api/v1/configmaps?watch=true")
		ask("/api/v1/pods?watch=true&fieldSelector=metadata.name%3Dx")

		if n := asked.n.Load() - before; n != tries+2 {
			t.Errorf("%d requests were made, want %d", n, tries+2)
		}
	})
}
