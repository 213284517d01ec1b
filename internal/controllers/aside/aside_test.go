package aside_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var errHung = errors.New("hung")

func request(namespace string) scope.Key { return scope.Installs.In(namespace) }

// hung is a reconciler whose passes hang until something is sent, and fail then; those of the namespace "quick" do neither.
type hung struct {
	passes atomic.Int32
	goOn   chan struct{}
}

func (h *hung) Reconcile(_ context.Context, key scope.Key) (reconcile.Result, error) {
	if key == request("quick") {
		return reconcile.Result{RequeueAfter: time.Hour}, nil
	}

	h.passes.Add(1)
	<-h.goOn

	return reconcile.Result{}, errHung
}

// asks stands for what asks for requests.
type asks struct {
	again chan scope.Key
	asked atomic.Bool
}

func (a *asks) Return(key scope.Key)     { a.again <- key }
func (a *asks) Asked(key scope.Key) bool { return a.asked.Load() && key == request("slow") }

// TestAskedInTheQueue: what changes while a pass hangs may reach the reconciler only after its end, because all workers are busy.
// It is not taken for answered by that pass, which had read everything before.
func TestAskedInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &hung{goOn: make(chan struct{})}
		to := &asks{again: make(chan scope.Key, 1)}
		r := aside.New(inner, to)

		if got, err := r.Reconcile(t.Context(), request("slow")); !got.IsZero() || err != nil {
			t.Errorf("it returned %v, %v", got, err)
		}

		to.asked.Store(true)
		inner.goOn <- struct{}{}
		<-to.again

		go func() { inner.goOn <- struct{}{} }()

		if _, err := r.Reconcile(t.Context(), request("slow")); !errors.Is(err, errHung) || inner.passes.Load() != 2 {
			t.Errorf("after %d passes it returned %v", inner.passes.Load(), err)
		}
	})
}

// TestPassThatHangs: it keeps its place for a moment only. There is one pass of a request at a time, and what became of it is
// told once it has ended.
func TestPassThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &hung{goOn: make(chan struct{})}
		again := make(chan scope.Key, 1)
		r := aside.New(inner, &asks{again: again})

		if got, err := r.Reconcile(t.Context(), request("quick")); got.RequeueAfter != time.Hour || err != nil {
			t.Errorf("a quick pass returned %v, %v", got, err)
		}

		began := time.Now()
		if got, err := r.Reconcile(t.Context(), request("slow")); !got.IsZero() || err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a pass that hangs returned %v, %v after %v", got, err, time.Since(began))
		}

		inner.goOn <- struct{}{}

		if key := <-again; key != request("slow") {
			t.Errorf("%q has to come again", key)
		}

		if _, err := r.Reconcile(t.Context(), request("slow")); !errors.Is(err, errHung) || inner.passes.Load() != 1 {
			t.Errorf("after %d passes it returned %v", inner.passes.Load(), err)
		}
	})
}

// TestAskedMeanwhile: what is asked while a pass hangs is not forgotten, and waits for its end.
func TestAskedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &hung{goOn: make(chan struct{})}
		again := make(chan scope.Key, 1)
		r := aside.New(inner, &asks{again: again})

		for range 3 {
			if got, err := r.Reconcile(t.Context(), request("slow")); !got.IsZero() || err != nil {
				t.Errorf("it returned %v, %v", got, err)
			}
		}

		if n := inner.passes.Load(); n != 1 {
			t.Fatalf("%d passes of one request at once", n)
		}

		inner.goOn <- struct{}{}
		<-again

		go func() { inner.goOn <- struct{}{} }()

		if _, err := r.Reconcile(t.Context(), request("slow")); !errors.Is(err, errHung) || inner.passes.Load() != 2 {
			t.Errorf("after %d passes it returned %v", inner.passes.Load(), err)
		}
	})
}

// TestManyThatHang: no more than so many go on beside the controller.
func TestManyThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &hung{goOn: make(chan struct{})}
		r := aside.New(inner, &asks{again: make(chan scope.Key, 100)})

		var returned atomic.Int32

		for i := range 100 {
			go func() {
				_, _ = r.Reconcile(t.Context(), request(strconv.Itoa(i)))

				returned.Add(1)
			}()
		}

		time.Sleep(time.Minute)

		if n := returned.Load(); n != 64 {
			t.Errorf("%d of 100 were set aside, want 64", n)
		}

		close(inner.goOn)
	})
}

// TestPanic: it is an error of the pass, and ends nothing else.
func TestPanic(t *testing.T) {
	inner := changes.ReconcilerFunc(func(context.Context, scope.Key) (reconcile.Result, error) { panic("oh") })

	if _, err := aside.New(inner, nil).Reconcile(t.Context(), request("any")); err == nil || !strings.Contains(err.Error(), "oh") {
		t.Errorf("it returned %v", err)
	}
}
