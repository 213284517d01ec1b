package generic

import (
	"errors"
	"sync"
	"time"
)

const (
	// patience is how long the next of several writes waits for the one before it, and shortPatience how long once one has taken
	// longer.
	patience      = time.Second
	shortPatience = patience / 10
	// atOnce is how many of them are under way at a time. Each that hangs takes from what the API server does at once.
	atOnce = 32
)

// InTurn makes n writes, one after the other. One that takes long, because of an admission webhook for example, does not keep the
// next from beginning. It returns once all have ended.
func InTurn(n int, write func(i int) error) error {
	var (
		errs     = make([]error, n)
		underWay = make(chan struct{}, atOnce)
		all      sync.WaitGroup
	)

	wait := patience

	for i := range n {
		underWay <- struct{}{}

		done := make(chan struct{})

		all.Go(func() {
			defer func() {
				close(done)
				<-underWay
			}()

			errs[i] = write(i)
		})

		select {
		case <-done:
		case <-time.After(wait):
			wait = shortPatience
		}
	}

	all.Wait()

	return errors.Join(errs...)
}
