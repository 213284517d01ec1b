// Package aside keeps a slow reconcile of one namespace from delaying the others of a controller.
package aside

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// detachAfter is how long a reconcile keeps its worker. A reconcile that waits for nothing takes less, so that the number of
	// workers still bounds how many compute at once.
	detachAfter = 2 * time.Second
	// maxAside bounds the detached reconciles. Further ones keep their workers.
	maxAside = 64
)

// Reconciler runs the reconciles of another reconciler. One that takes long, because an admission webhook delays its writes for
// example, is detached: it continues in the background, and its worker serves other requests. There is still one reconcile of a
// request at a time.
type Reconciler struct {
	inner changes.Reconciler
	to    Changes

	mu    sync.Mutex
	aside map[scope.Key]*detached
}

// Changes has a request whose detached reconcile has ended come once more, and says whether something has asked for the request
// since that reconcile began. Where all workers are busy, or changes are debounced, the request itself may come much later.
type Changes interface {
	Return(key scope.Key)
	Asked(key scope.Key) bool
}

// detached is a reconcile that continues in the background, or has ended there.
type detached struct {
	// answer is nil while the reconcile continues.
	answer *answer
	// asked says that the request came again meanwhile.
	asked bool
}

type answer struct {
	result reconcile.Result
	err    error
}

// New returns a reconciler that runs the reconciles of inner.
func New(inner changes.Reconciler, to Changes) *Reconciler {
	return &Reconciler{inner: inner, to: to, aside: map[scope.Key]*detached{}}
}

// Reconcile runs inner. While a detached reconcile of the request continues, it returns at once; the next one answers for both.
func (r *Reconciler) Reconcile(ctx context.Context, req scope.Key) (reconcile.Result, error) {
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

// before is the answer to a request whose detached reconcile continues, or has ended and need not be repeated.
func (r *Reconciler) before(req scope.Key) (late answer, is bool) {
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

	return *p.answer, !p.asked && !r.to.Asked(req)
}

// set notes that a reconcile is detached, and says whether it may be.
func (r *Reconciler) set(req scope.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	if len(r.aside) >= maxAside {
		return false
	}

	r.aside[req] = &detached{}

	return true
}

// end notes the result of a detached reconcile, and has the request come once more: the controller's queue uses what Reconcile
// returns.
func (r *Reconciler) end(req scope.Key, got answer) {
	r.mu.Lock()
	r.aside[req].answer = &got
	r.mu.Unlock()

	r.to.Return(req)
}

// recovered runs a reconcile. controller-runtime recovers from a panic only in what it calls itself.
func recovered(ctx context.Context, inner changes.Reconciler, req scope.Key) (got answer) {
	defer func() {
		if p := recover(); p != nil {
			got.err = fmt.Errorf("panic: %v [recovered]\n%s", p, debug.Stack())
		}
	}()

	result, err := inner.Reconcile(ctx, req)

	return answer{result, err}
}
