// Package template reconciles all ScopeTemplates and ScopeInstances together: an instance may change its template, and
// templates share the names of the cluster.
package template

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/clusterwide"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Reconciler keeps the cluster true to ScopeTemplates and ScopeInstances.
type Reconciler struct {
	// Client reads the resources from the cache, and writes their status, which is Ambit's own.
	Client client.Client
	// IsMissing says whether a kind is not there, because its definition is not.
	IsMissing func(client.Object) bool
	Store     *read.Store
	Applier   *apply.Applier
	Recorder  events.EventRecorder
	Metrics   *report.Metrics
	Changes   *changes.Changes

	// AmbitNamespace is where Ambit runs; labels never select it.
	AmbitNamespace string
	// NeedDelegate refuses all of them: what has no namespace has no service account that it could name.
	NeedDelegate bool

	// Resources says which of those that rules name have no namespace.
	Resources *discovered.Resources

	written changes.Written
	// measured are the instances that the metrics speak of.
	measured map[string]struct{}
}

// Reconcile reads, compiles, plans, applies and reports. There is one request for everything.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	firstEvent := r.Changes.Dequeue(scope.Cluster)

	all, err := r.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}

	if wait := r.written.Wait(all.objects()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // The cache is about to tell of a write of Ambit's own.
	}

	scopes := all.scopes()
	// Before the facts are taken, so that no change of a namespace falls between the two.
	r.Changes.Follow(scope.Cluster, scopes)

	f, listed := r.Store.Facts(scope.Cluster, time.Now())
	if !listed {
		return reconcile.Result{}, nil // The store tells once it has listed everything.
	}

	f.AmbitNamespace, f.Granted = r.AmbitNamespace, r.Applier.Granted(scope.Cluster)
	f.ClusterScoped = plan.ClusterScoped(scopes, r.Resources.IsClusterScoped)
	f.ClusterBindings = clusterwide.Of(r.Store, scope.Cluster, scopes, r.Resources.IsClusterScoped)
	p := plan.New(scopes, f)

	writers := writer.Manager{NeedDelegate: r.NeedDelegate}
	out := r.Applier.Apply(ctx, &p, writers.Identities(&p, &f.OperatorNamespace))
	r.Changes.Refuse(scope.Cluster, out.Refused(scope.Cluster))
	r.Changes.Again(scope.Cluster, r.Applier.PlanAgain(&p, f))
	r.Metrics.Applied(&p, out, r.Store.Size(scope.Cluster), firstEvent)

	return result(out, r.report(ctx, all, &p, out))
}

// result says when to plan again: after a failure, later each time.
func result(out *apply.Outcome, err error) (reconcile.Result, error) {
	failed, transient := out.Failed(err)
	if transient != nil {
		return reconcile.Result{}, transient
	}

	return reconcile.Result{Requeue: failed}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
}
