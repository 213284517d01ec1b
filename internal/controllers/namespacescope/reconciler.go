// Package namespacescope reconciles the scopes of one namespace together, because they share its operators and its watch
// lists.
package namespacescope

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// Reconciler keeps the cluster true to the scopes of a namespace.
type Reconciler struct {
	generic.Shared

	// Client reads scopes from the cache, and writes their status and finalizers, which are Ambit's own.
	Client client.Client
	// Live reads what the cache did not keep, and Quota is what it keeps of scopes; nil where it keeps all.
	Live  client.Reader
	Quota *declared.Quota

	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// FollowGrace is how long permissions stay in a namespace that left, for readers that follow the list.
	FollowGrace time.Duration
	// FinishGrace is how long a namespace that left keeps what it has while custom resources there wait for a finalizer of an
	// operator, which Finder finds.
	FinishGrace time.Duration
	Finder      *waiting.Finder

	written changes.Written
	// leaving is since when permissions are to be revoked in namespaces that left.
	leaving memory[map[string]time.Time]
	unheld  unheld
	looked  memory[left]
}

// Reconcile reconciles the scopes of a namespace, if it is served. What other managers projected for other operator
// namespaces is theirs.
func (r *Reconciler) Reconcile(ctx context.Context, key scope.Key) (reconcile.Result, error) {
	if !r.Writers.Serves(key.Namespace) {
		return reconcile.Result{}, nil
	}

	return r.Serve(ctx, key)
}

// Serve reconciles the scopes of a namespace, served or not: the status of those that are not served says so.
func (r *Reconciler) Serve(ctx context.Context, key scope.Key) (reconcile.Result, error) {
	return generic.Reconcile(ctx, key, &r.Shared, r.state)
}
