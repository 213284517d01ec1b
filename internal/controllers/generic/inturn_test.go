package generic

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestInTurn: writes are made one after the other, those that hang a few at a time, and each error is returned.
func TestInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		last := -1

		if err := InTurn(100, func(i int) error {
			if time.Sleep(patience / 2); last != i-1 {
				t.Errorf("%d follows %d", i, last)
			}

			last = i

			return nil
		}); err != nil || last != 99 {
			t.Errorf("got %v after %d", err, last)
		}

		const hangs = 30 * time.Second

		var (
			underWay, most atomic.Int64
			began          = time.Now()
		)

		err := InTurn(2*atOnce, func(i int) error {
			most.Store(max(most.Load(), underWay.Add(1)))
			time.Sleep(hangs)
			underWay.Add(-1)

			if i == 1 {
				return errFailed
			}

			return nil
		})
		if !errors.Is(err, errFailed) || most.Load() != atOnce {
			t.Errorf("got %v with %d at once", err, most.Load())
		}

		if took := time.Since(began); took > 2*hangs+2*atOnce*shortPatience+patience {
			t.Errorf("it took %v", took)
		}
	})
}
