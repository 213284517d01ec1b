package read

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deaf is a client whom nobody answers until the context ends.
type deaf struct{ client.WithWatch }

func (deaf) Scheme() *runtime.Scheme { return runtime.NewScheme() }

func (deaf) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()

	return ctx.Err()
}

func (deaf) Watch(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
	<-ctx.Done()

	return nil, ctx.Err()
}

func TestListedWaitsForEveryList(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := NewWatches(NewStore(&ear{}), deaf{}, false)

		if w.Listed() == nil {
			t.Error("everything is listed before anything has begun")
		}

		go func() { _ = w.Start(ctx) }()

		synctest.Wait()

		for left := w.store.waiting; left > 0; left-- {
			if w.Listed() == nil {
				t.Errorf("everything is listed, and %d lists are not there", left)
			}

			w.store.mu.Lock()
			w.store.waiting--
			w.store.mu.Unlock()
		}

		if err := w.Listed(); err != nil {
			t.Error("everything is listed:", err)
		}

		cancel()
		// A reflector that ends reports that. Reports wait for one another, by a time that all tests share and that is years ahead of
		// the clock here (rudimentaryErrorBackoff in k8s.io/apimachinery/pkg/util/runtime).
		time.Sleep(math.MaxInt64 / 2)
	})
}
