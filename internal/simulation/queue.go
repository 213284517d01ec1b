package simulation

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// queue remembers what asks to be reconciled, and when.
type queue struct {
	waits map[string]time.Duration
}

// namespaces are those that something asked for.
func (q *queue) namespaces() []string {
	var out []string

	for key := range q.waits {
		if namespace, is := scope.InstallNamespace(key); is {
			out = append(out, namespace)
		}

		if namespace, is := scope.CatalogNamespace(key); is {
			out = append(out, namespace)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// longest is for how long the last of them waits, and forgets them all.
func (q *queue) longest() time.Duration {
	longest := time.Duration(0)
	for _, wait := range q.waits {
		longest = max(longest, wait)
	}

	clear(q.waits)

	return longest
}

// AddAfter notes a request.
func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	q.waits[item.Name] = max(q.waits[item.Name], after)
}

// Add notes a request.
func (q *queue) Add(item reconcile.Request) { q.AddAfter(item, 0) }

// AddRateLimited notes a request.
func (q *queue) AddRateLimited(item reconcile.Request) { q.AddAfter(item, 0) }

// Len is how many there are.
func (q *queue) Len() int { return len(q.waits) }

// Get is asked by nobody: the simulation looks at the namespaces.
func (*queue) Get() (item reconcile.Request, shutdown bool) { return item, true }

// Done does nothing, like the others.
func (*queue) Done(reconcile.Request) {}

// Forget does nothing.
func (*queue) Forget(reconcile.Request) {}

// NumRequeues is none.
func (*queue) NumRequeues(reconcile.Request) int { return 0 }

// ShutDown does nothing.
func (*queue) ShutDown() {}

// ShutDownWithDrain does nothing.
func (*queue) ShutDownWithDrain() {}

// ShuttingDown is false.
func (*queue) ShuttingDown() bool { return false }
