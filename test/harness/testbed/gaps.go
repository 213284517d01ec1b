package testbed

import (
	"context"
	"time"
)

// Gaps keeps asking whether a service account may do something in namespaces, until the function that it returns is called, which
// says how often the answer was no, and how often it asked.
func (w *World) Gaps(ops, account, words string, namespaces ...string) func() (denied, asked int) {
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})

	var denied, asked int

	go func() {
		defer close(ended)

		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			for _, namespace := range namespaces {
				allowed, err := Review(ctx, w.Client, ops, account, namespace, words)
				if err != nil {
					continue
				}

				if asked++; !allowed {
					denied++
				}
			}
		}
	}()

	return func() (int, int) {
		stop()
		<-ended

		return denied, asked
	}
}
