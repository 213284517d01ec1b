package controllers

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/ambit-k8s/ambit/internal/scope"
)

var _ workqueue.TypedRateLimiter[scope.Key] = &backOff{}

func TestBackOff(t *testing.T) {
	t.Parallel()

	now := time.Unix(0, 0)
	b := newBackOff()
	b.now = func() time.Time { return now }

	one, other := scope.NamespaceScopes.In("one"), scope.Installs.In("one")
	want := func(reason string, r scope.Key, wait time.Duration, count int) {
		t.Helper()

		if got := b.When(r); got != wait || b.NumRequeues(r) != count {
			t.Errorf("%s: waits %s after %d tries, want %s after %d", reason, got, b.NumRequeues(r), wait, count)
		}
	}

	want("the first failure", one, firstRetry, 1)

	for range 20 {
		now = now.Add(time.Millisecond)
		want("a plan that an event asked for", one, firstRetry-time.Duration(now.UnixNano()), 1)
	}

	now = time.Unix(0, 0).Add(firstRetry)
	want("the try that was due", one, 2*firstRetry, 2)
	want("another request", other, firstRetry, 1)

	now = now.Add(2*firstRetry + time.Second)
	want("a try that took long", one, 4*firstRetry, 3)

	b.Forget(one)

	if n := b.NumRequeues(one); n != 0 {
		t.Errorf("%d tries are not forgotten", n)
	}

	want("after a success", one, firstRetry, 1)

	for range 20 {
		now = now.Add(time.Hour)
		b.When(one)
	}

	if got := b.NumRequeues(one); got != 21 {
		t.Errorf("%d tries", got)
	}

	now = now.Add(time.Hour)
	want("what fails for long", one, lastRetry, 22)
}
