package testbed

import (
	"fmt"
	"time"
)

// How long to wait between two looks: what takes long is looked at less often, because whoever looks keeps the API server from
// what is waited for.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// Until looks until there is nothing to complain about. It returns the last complaint if there still is one after a time.
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
