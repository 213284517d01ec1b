// Package group reconciles the OperatorGroups and ClusterServiceVersions of one namespace together: who may act for an
// operator, and where, follows from both.
package group

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Reconciler keeps namespaces true to their OperatorGroups and ClusterServiceVersions.
type Reconciler struct {
	generic.Shared

	// Client writes the status of the resources, which is Ambit's own, and reads definitions from the cache.
	Client client.Client
	// Cache reads OLM's kinds: ClusterServiceVersions without types, for one that its type cannot read would keep all others from
	// being listed.
	Cache client.Reader
	// Serves says whether the API server serves a kind in a version. What is found missing was so at a time or later.
	Serves func(at time.Time, group, version, kind string) bool
	// Ask has what finds out about kinds ask definitions, once they are watched.
	Ask func(discovered.Defined)
	// Quota is what is kept of ClusterServiceVersions.
	Quota *Quota
	// Groups and Subscriptions are what is kept of these, and Live reads what is not; nil where all are kept.
	Groups, Subscriptions *declared.Quota
	Live                  client.Reader

	// Index is what the guard goes by; nil where no guard does.
	Index *read.GroupIndex

	// Confined is set where Ambit has rights in single namespaces only; nil elsewhere.
	Confined *Confined
	// Kubernetes is the version of the API server.
	Kubernetes string
	// Ours says whether these kinds are Ambit's to serve, and not those of OLM's own controllers, and whether that is known.
	Ours func() (ours, known bool)

	written changes.Written
	brought brought
	// remembered are the accounts, by namespace, by which something was last installed there.
	remembered sync.Map
	// propagating is in how many namespaces permissions wait for the annotation of operators.
	propagating atomic.Int32
}

// Reconcile reconciles what is installed in a namespace. Where these kinds are not Ambit's, it revokes what
// Ambit made for them before and does nothing else.
func (r *Reconciler) Reconcile(ctx context.Context, key scope.Key) (reconcile.Result, error) {
	return generic.Reconcile(ctx, key, &r.Shared, r.state)
}

// Remember notes the account that the group of a namespace named, as a reconcile does.
func (r *Reconciler) Remember(namespace, account string) {
	r.remember(namespace, &writer.Group{Account: account, Exists: true})
}
