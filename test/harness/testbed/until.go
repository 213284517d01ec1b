package testbed

import (
	"fmt"
	"time"
)

// How long to wait between two checks. What takes long is checked less often, because checks take up the API server.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// Until repeats a check until it returns no error. If time runs out, it returns the last error.
func Until(limit time.Duration, check func() error) error {
	deadline, pause := time.Now().Add(limit), firstPause

	for {
		err := check()
		if err == nil {
			return nil
		}

		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}

		time.Sleep(pause)
		pause = min(pause*3/2, lastPause)
	}
}
