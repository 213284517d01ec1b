package operators_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// look is how often somebody looks.
	look = 100 * time.Millisecond
	// renewed is how old the last renewal of a lease may be while its holder leads: most renew every two seconds.
	renewed = 4 * time.Second
	// eight joins come so far apart.
	apart = 6 * time.Second
)

// asksAgainAndAgain changes the size of a resource whenever it was served. The caller asks for the longest time that it was not;
// then it is served twice more, so that an operator that has just begun, and has yet to lead, counts.
func (w *world) asksAgainAndAgain(namespace string) (longest func() time.Duration) {
	w.Helper()

	var (
		size    = int64(2)
		asked   = time.Now()
		most    time.Duration
		times   atomic.Int64
		working sync.WaitGroup
	)

	w.resize(namespace, size)

	ctx, end := context.WithCancel(w.Context())

	working.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(look) {
			most = max(most, time.Since(asked))

			if got, err := w.size(namespace); err != nil || got != size {
				continue
			}

			times.Add(1)

			size = 5 - size // 2 and 3, in turn
			if err := w.ask(ctx, namespace, size); err != nil {
				w.Errorf("asking for another size: %v", err)

				return
			}

			asked = time.Now()
		}
	})
	w.Cleanup(end)

	return func() time.Duration {
		w.Helper()

		enough := times.Load() + 2
		w.Within(patience, "the resource of "+namespace+" is served again", func() error {
			if n := times.Load(); n < enough {
				return fmt.Errorf("it was served %d times", n)
			}

			return nil
		})
		end()
		working.Wait()

		return most
	}
}

// ask is resize for a goroutine, which may not end the test.
func (w *world) ask(ctx context.Context, namespace string, size int64) error {
	for {
		o := w.resource(namespace, size)
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			o.Object["spec"] = w.op.spec(size)
			err = w.Client.Update(ctx, o)
		}

		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Whoever asked for it has seen enough.
		case !apierrors.IsConflict(err):
			return err
		}

		time.Sleep(look)
	}
}

// leads says whether somebody leads; where nobody ever does, whether somebody runs.
func (w *world) leads(ctx context.Context) bool {
	if w.op.lease == "" {
		for _, run := range w.kubelet.Runs() {
			if run.Ended.IsZero() {
				return true
			}
		}

		return false
	}

	lease := &coordinationv1.Lease{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.ops, Name: w.op.lease}, lease); err != nil {
		return false
	}

	s := &lease.Spec

	return s.HolderIdentity != nil && *s.HolderIdentity != "" && s.RenewTime != nil && time.Since(s.RenewTime.Time) < renewed
}

// leading measures in which share of the time somebody leads, until the caller asks for it.
func (w *world) leading() (share func() float64) {
	var (
		led, looked int
		working     sync.WaitGroup
	)

	ctx, end := context.WithCancel(w.Context())

	working.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(look) {
			looked++

			if w.leads(ctx) {
				led++
			}
		}
	})

	return sync.OnceValue(func() float64 {
		end()
		working.Wait()

		return float64(led) / float64(max(looked, 1))
	})
}

func eightJoins(w *world) {
	const count = 8

	w.Within(patience, "somebody leads", func() error {
		if !w.leads(w.Context()) {
			return errors.New("nobody does")
		}

		return nil
	})

	var members []string
	for range count {
		members = append(members, w.member())
	}

	runs, begun := len(w.kubelet.Runs()), time.Now()
	share := w.leading()

	for i, m := range members {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * apart)))
		w.adds(m)
	}

	for _, m := range members {
		w.served(m, 1)
	}

	took, led := time.Since(begun), share()
	w.measured("led during eight joins", "%.0f %%", 100*led)
	w.measured("eight joins served after", "%.0f s", took.Seconds())
	w.measured("restarts for eight joins", "%d", len(w.kubelet.Runs())-runs)

	if led < 0.5 {
		w.Errorf("somebody led in %.0f %% of the time", 100*led)
	}
}
