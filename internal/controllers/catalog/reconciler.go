// Package catalog reconciles the CatalogSources, Subscriptions and InstallPlans of one namespace together: what a Subscription
// gets follows from all of them.
package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Applier is what is asked of the applier.
type Applier interface {
	Put(ctx context.Context, id apply.Identity, obj *unstructured.Unstructured) (apply.Result, error)
	Try(ctx context.Context, id apply.Identity, obj *unstructured.Unstructured) error
	Lacks(ctx context.Context, id apply.Identity, needs []authority.Place) ([]authority.Place, error)
}

// Reconciler gives Subscriptions what they ask for.
type Reconciler struct {
	// Client makes InstallPlans, and writes the status of what is reconciled here, which is Ambit's own.
	Client client.Client
	// Cache reads. OLM's kinds it reads without types: those of OLM panic when they read a CatalogSource with an empty
	// updateStrategy (UpdateStrategy.UnmarshalJSON in operator-framework/api), and one object whose fields the types cannot
	// read would keep all others from being listed.
	Cache client.Reader
	// Live reads past the cache, what matters only while something is installed.
	Live     client.Reader
	Store    *read.Store
	Watches  *read.Watches
	Applier  Applier
	Recorder events.EventRecorder
	Changes  *changes.Changes

	// Quotas are what Cache keeps of the kinds; nil where that is all.
	Quotas Quotas

	// Global is the namespace whose catalogs are for all namespaces.
	Global string
	// NeedDelegate refuses groups that name no service account.
	NeedDelegate bool
	// Ours says whether these kinds are Ambit's to serve, and not those of OLM's own controllers.
	Ours func() bool

	written changes.Written
	mu      sync.Mutex
	// offered is what the catalogs of Global held when it was last looked.
	offered string
}

const (
	// settling is how long after a change of permissions the API server may still refuse by the old ones, and checkInterval how soon
	// it is asked again meanwhile.
	settling      = 5 * time.Second
	checkInterval = time.Second
	// refusedAgain is how soon it is asked again without any change that Ambit sees: not every right comes from RBAC.
	refusedAgain = 10 * time.Minute
)

// Reconcile reads, decides, installs and reports, for the namespace whose operator namespace the request names.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace, _ := scope.CatalogNamespace(req.Name)
	r.Changes.Dequeue(req.Name)

	if !r.Ours() {
		return reconcile.Result{}, nil // Asked again when that changes.
	}

	found, err := r.read(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}

	r.Watches.Catalogs(namespace, found.configMaps())

	if err := r.offer(ctx, found); err != nil {
		return reconcile.Result{}, err
	}

	if len(found.objects()) == 0 {
		r.Changes.Forget(req.Name)

		return reconcile.Result{}, nil
	}

	if wait := r.written.Wait(found.objects()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // The cache is about to report a write of Ambit's own.
	}

	p := &state{Reconciler: r, found: found, now: metav1.Now(), refused: map[string]struct{}{}}
	p.resolve(ctx)
	p.install(ctx)

	r.Changes.Refuse(req.Name, p.refused)

	return p.result(p.report(ctx))
}

// state is one reconciliation of a namespace.
type state struct {
	*Reconciler

	found   *resources
	now     metav1.Time
	targets []*target
	// refused are the namespaces in which something was refused.
	refused map[string]struct{}
	errs    []error
}

// result says when to look again: after a failure that may pass by itself, later each time. What is refused is tried again when
// permissions change, and for a while after that, until the API server's authorizer knows the change.
func (p *state) result(err error) (reconcile.Result, error) {
	err = errors.Join(append(p.errs, err)...)

	if err != nil {
		if apply.Classify(err) == apply.Transient {
			return reconcile.Result{}, err
		}

		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
	}

	var again reconcile.Result

	for namespace := range p.refused {
		if p.now.Sub(p.Store.PermissionsChangedAt(namespace)) < settling {
			return reconcile.Result{RequeueAfter: checkInterval}, nil
		}

		again.RequeueAfter = refusedAgain
	}

	return again, nil
}
