// Package group reconciles the OperatorGroups and ClusterServiceVersions of one namespace together: who may act for an
// operator, and where, follows from both.
package group

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/clusterwide"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/orphans"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Reconciler keeps namespaces true to their OperatorGroups and ClusterServiceVersions.
type Reconciler struct {
	// Client reads the resources from the cache, and writes their status, which is Ambit's own.
	Client client.Client
	// Cache reads ClusterServiceVersions, without types, and whatever else is in the cache.
	Cache    client.Reader
	Store    *read.Store
	Watches  *read.Watches
	Applier  *apply.Applier
	Recorder events.EventRecorder
	Metrics  *report.Metrics
	Changes  *changes.Changes
	Orphans  *orphans.Reporter
	Mapper   meta.RESTMapper
	// Resources says which resources have no namespace.
	Resources *discovered.Resources
	// Room is what is kept of ClusterServiceVersions.
	Room *Room
	// Groups and Subscriptions are what is kept of these, and Live reads what is not; nil where all are kept.
	Groups, Subscriptions *declared.Room
	Live                  client.Reader

	// AmbitNamespace is where Ambit runs; labels never select it.
	AmbitNamespace string
	// NeedDelegate refuses groups that name no service account.
	NeedDelegate bool
	// Confined is what is worked with where Ambit has rights in single namespaces alone; nil elsewhere.
	Confined *Confined
	// Kubernetes is the version of the API server.
	Kubernetes string
	// Ours says whether these kinds are Ambit's to serve, and not those of OLM's own controllers, and whether that is known.
	Ours func() (ours, known bool)
	// Now is the clock; nil means that of the machine.
	Now func() time.Time

	written changes.Written
	brought brought
	// remembered are the accounts, by namespace, that the group of the namespace last named.
	remembered sync.Map
	// propagating is in how many namespaces permissions wait for operators to be told that they go.
	propagating atomic.Int32
}

// Reconcile reads, compiles, plans, applies and reports, for the install key that the request names. Where these kinds are not
// Ambit's, it revokes what Ambit made for them before and does nothing else.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace, _ := scope.InstallNamespace(req.Name)
	firstEvent := r.Changes.Dequeue(req.Name)

	ours, known := r.Ours()

	found, err := r.read(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}

	if ours {
		// What is unknown keeps nothing from being done.
		err = r.reportUnreadable(ctx, found)
	}

	if len(found.groups)+len(found.csvs) == 0 {
		return r.serveNone(ctx, namespace, firstEvent, err)
	}

	if !ours && !r.Store.Projected(req.Name) {
		r.Watches.ReleaseInstalls(namespace)

		return reconcile.Result{}, nil
	}

	r.Watches.Installs(namespace)

	if wait := r.written.Wait(found.objects()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // The cache is about to tell of a write of Ambit's own.
	}

	// Before the facts are taken, so that no change of a namespace falls between the two.
	r.Changes.Follow(req.Name, found.interests())

	if err := r.watchTargets(found); err != nil {
		return reconcile.Result{}, err
	}

	f, listed := r.Store.Facts(req.Name, r.now())
	if !listed {
		return reconcile.Result{}, nil // The store tells once it has listed everything.
	}

	r.complete(f)

	pass, rivals := r.begin(ctx, found, f)
	pass.fail(errors.Join(err, rivals))

	if !ours {
		return pass.revoke(ctx, req.Name, known)
	}

	return pass.serve(ctx, req.Name, firstEvent)
}

// complete adds to facts what others than the store know. What rules say of custom resources is not looked up: whoever may write
// a ClusterServiceVersion may name any number.
func (r *Reconciler) complete(f *facts.Facts) {
	key := f.OperatorNamespace.Name
	f.AmbitNamespace, f.Granted, f.ClusterScoped = r.AmbitNamespace, r.Applier.Granted(key), reach.BuiltInClusterScoped()
	f.ClusterBindings = clusterwide.Of(r.Store, key, nil, r.Resources.IsClusterScoped)
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}

	return time.Now()
}

// begin takes in what is known, and tells the neighbours what became of it.
func (r *Reconciler) begin(ctx context.Context, found *resources, f *facts.Facts) (*state, error) {
	w := r.snapshot(found, f)
	r.confine(ctx, w)
	err := errors.Join(r.findRivals(ctx, w), r.notifyRivals(ctx, found.namespace, w))

	if w.Group != nil {
		r.remembered.Store(found.namespace, w.Group.Account)
	}

	return &state{
		Reconciler: r, found: found, snapshot: w, facts: f, identity: r.identity(w), removes: r.remover(found.namespace),
	}, err
}
