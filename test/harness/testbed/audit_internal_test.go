package testbed

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStillServerIsNoRest holds that nothing counts as at rest because the API server answered nobody for a while.
func TestStillServerIsNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		counts, rests := stays(func() map[string]int {
			// After what would be quiet on an API server that answers, it goes on.
			if looks++; looks == 2 {
				time.Sleep(time.Duration(quiet) * lastPause)
			}

			return map[string]int{"get pods": max(1, min(looks-1, 3))}
		})

		if !rests || counts["get pods"] != 3 {
			t.Errorf("it rests: %t, with %v", rests, counts)
		}

		if counts, rests = stays(func() map[string]int { looks++; return map[string]int{"get pods": looks} }); rests {
			t.Errorf("what asks all the time rests with %v", counts)
		}
	})
}
