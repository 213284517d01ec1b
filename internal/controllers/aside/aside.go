// Package aside keeps what hangs in one namespace from holding up the others of a controller.
package aside

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// detachAfter is how long a pass keeps its place among those that are made at once. It is longer than one takes in which nothing
	// hangs, so that no more than these compute at once.
	detachAfter = 2 * time.Second
	// maxAside bounds the passes that go on beside the controller. Beyond that they keep their places.
	maxAside = 64
)

// Reconciler makes the passes of another one. A pass that takes long, because an admission webhook keeps its writes for example,
// goes on beside the controller, which meanwhile serves other requests. There is one pass of a request at a time all the same.
type Reconciler struct {
	inner reconcile.Reconciler
	again func(key string)

	mu    sync.Mutex
	aside map[reconcile.Request]*detached
}

// detached is a pass that goes on beside the controller, or has ended there.
type detached struct {
	// answer is nil while the pass goes on.
	answer *answer
	// asked says that another pass was asked for meanwhile.
	asked bool
}

type answer struct {
	result reconcile.Result
	err    error
}

// New returns a reconciler that makes the passes of inner. It calls again with the name of a request that has to come once more,
// after a pass of it has ended beside the controller.
func New(inner reconcile.Reconciler, again func(key string)) *Reconciler {
	return &Reconciler{inner: inner, again: again, aside: map[reconcile.Request]*detached{}}
}

// Reconcile makes a pass. While one of the request goes on, it returns at once; the pass after that answers for both.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if late, is := r.before(req); is {
		return late.result, late.err
	}

	answers := make(chan answer, 1)

	go func() { answers <- recovered(ctx, r.inner, req) }()

	select {
	case got := <-answers:
		return got.result, got.err
	case <-time.After(detachAfter):
	}

	if !r.set(req) {
		got := <-answers

		return got.result, got.err
	}

	go func() { r.end(req, <-answers) }()

	return reconcile.Result{}, nil
}

// before is the answer to a request whose pass goes on beside the controller, or has ended there and is as good as another one.
func (r *Reconciler) before(req reconcile.Request) (late answer, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	p := r.aside[req]

	switch {
	case p == nil:
		return answer{}, false
	case p.answer == nil:
		p.asked = true

		return answer{}, true
	}

	delete(r.aside, req)

	return *p.answer, !p.asked
}

// set notes that a pass goes on beside the controller, and says whether it may.
func (r *Reconciler) set(req reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	if len(r.aside) >= maxAside {
		return false
	}

	r.aside[req] = &detached{}

	return true
}

// end notes what came of a pass, and has the request come once more: the controller's queue goes by what Reconcile returns.
func (r *Reconciler) end(req reconcile.Request, got answer) {
	r.mu.Lock()
	r.aside[req].answer = &got
	r.mu.Unlock()

	r.again(req.Name)
}

// recovered makes a pass. controller-runtime recovers from a panic only in what it calls itself.
func recovered(ctx context.Context, inner reconcile.Reconciler, req reconcile.Request) (got answer) {
	defer func() {
		if p := recover(); p != nil {
			got.err = fmt.Errorf("panic: %v [recovered]\n%s", p, debug.Stack())
		}
	}()

	result, err := inner.Reconcile(ctx, req)

	return answer{result, err}
}
