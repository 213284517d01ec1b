// Package catalog reconciles the CatalogSources, Subscriptions and InstallPlans of one namespace together: what a Subscription
// gets follows from all of them.
package catalog

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Reconciler gives Subscriptions what they ask for. The catalogs of Ambit's own namespace are for all namespaces.
type Reconciler struct {
	generic.Shared

	// Client writes the status of what is reconciled here, which is Ambit's own.
	Client client.Client
	// Cache reads. OLM's kinds other than OperatorGroups are read without types: those of OLM panic when they read a CatalogSource
	// with an empty updateStrategy (UpdateStrategy.UnmarshalJSON in operator-framework/api), and one object whose fields the types
	// cannot read would keep all others from being listed.
	Cache client.Reader
	// Live reads, past the cache, what matters only while something is installed.
	Live client.Reader
	// Quotas are what Cache keeps of the kinds; nil where that is all.
	Quotas Quotas

	// Index is what the guard goes by; nil where no guard does.
	Index *read.GroupIndex

	// Ours says whether these kinds are Ambit's to serve, and not those of OLM's own controllers.
	Ours func() bool

	written changes.Written
	mu      sync.Mutex
	// offered is what the catalogs of Ambit's own namespace held at the last look.
	offered string
}

const (
	// settling is how long after a change of permissions the API server may still refuse by the old ones, and checkInterval how
	// often Ambit tries again meanwhile.
	settling      = 5 * time.Second
	checkInterval = time.Second
	// refusedAgain is when Ambit tries again without any change that it sees: not every right comes from RBAC.
	refusedAgain = 10 * time.Minute
)

// Reconcile reconciles what is subscribed to in a namespace.
func (r *Reconciler) Reconcile(ctx context.Context, key scope.Key) (reconcile.Result, error) {
	return generic.Reconcile(ctx, key, &r.Shared, r.state)
}
