// Package namespacescope reconciles the scopes of one namespace together, because they share its operators and its watch
// lists.
package namespacescope

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/clusterwide"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/orphans"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// Reconciler keeps the cluster true to the scopes of a namespace.
type Reconciler struct {
	// Client reads scopes from the cache, and writes their status and finalizers, which are Ambit's own.
	Client client.Client
	// Live reads what the cache did not keep, and Room is what it keeps of scopes; nil where it keeps all.
	Live     client.Reader
	Room     *declared.Room
	Store    *read.Store
	Watches  *read.Watches
	Applier  *apply.Applier
	Recorder events.EventRecorder
	Metrics  *report.Metrics
	Changes  *changes.Changes
	Orphans  *orphans.Reporter

	// Namespaces are the namespaces that are served; empty means all. What other managers projected for other operator namespaces
	// is theirs.
	Namespaces []string
	// Installs says that this Ambit serves OperatorGroups, whatever may be in the way of that now.
	Installs bool
	// AmbitNamespace is where Ambit runs; labels never select it.
	AmbitNamespace string
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// FollowGrace is how long permissions stay in a namespace that left, for readers that follow the list.
	FollowGrace time.Duration
	// FinishGrace is how long a namespace that left keeps what it has while custom resources there wait for a finalizer of an
	// operator, which Looker finds.
	FinishGrace time.Duration
	Looker      *waiting.Looker
	// DefaultDelegate is the service account that scopes write as which name none; empty means Ambit itself.
	DefaultDelegate string
	// NeedDelegate refuses scopes that name no service account and have no default one.
	NeedDelegate bool
	// OwnUser is the name of the user that Ambit runs as; empty when it is not known.
	OwnUser string
	// IsClusterScoped says of a custom resource whether it is known to have no namespace. It is not asked where nothing may be read
	// cluster-wide.
	IsClusterScoped clusterwide.Lookup

	written changes.Written
	leaving leaving
	looked  looked
}

// Reconcile reads, compiles, plans, applies and reports, for the namespace that the request names.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, req.Name) {
		return reconcile.Result{}, nil
	}

	firstEvent := r.Changes.Dequeue(req.Name)

	resources, err := r.read(ctx, req.Name)
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
	}

	if err != nil {
		return reconcile.Result{}, err
	}

	if len(resources) == 0 && !r.isNamespaced() {
		return r.clear(ctx, req.Name, firstEvent)
	}

	if len(resources) == 0 && !r.Store.Projected(req.Name) {
		r.Orphans.Forget(req.Name)
		r.Changes.Forget(req.Name)

		return reconcile.Result{}, nil
	}

	scopes := r.compile(resources)
	// Before the facts are taken, so that no change of a namespace falls between the two.
	r.Changes.Follow(req.Name, scopes)
	r.Watches.Members(req.Name, r.toWatch(req.Name, scopes))
	r.Watches.CSVs(req.Name, slices.ContainsFunc(scopes, func(s scope.Scope) bool { return s.TouchesCSVs() }))

	f, listed := r.Store.Facts(req.Name, time.Now(), scope.WatchLists(scopes)...)
	if !listed {
		return reconcile.Result{}, nil // The store tells once it has listed everything.
	}

	f.OperatorNamespace.LeftOut = leftOut(f.OperatorNamespace.LeftOut, resources)
	f.AmbitNamespace, f.AmbitAccount, f.RestartInterval = r.AmbitNamespace, r.ambitAccount(req.Name), r.RestartInterval
	f.Granted, f.ClusterScoped = r.Applier.Granted(req.Name), reach.BuiltInClusterScoped()
	f.ClusterBindings = clusterwide.Of(r.Store, req.Name, scopes, r.IsClusterScoped)
	barred := r.Applier.Bar(ctx, req.Name, scopes, r.writers().In(&f.OperatorNamespace))
	f.FollowGrace, f.Leaving = r.FollowGrace, r.leaving.of(req.Name)
	p := r.planFinishing(ctx, scopes, f)

	r.leaving.note(req.Name, p.Leaving(), f.Now)

	out := r.Applier.ApplyWith(ctx, &p, r.writers().Identities(&p, &f.OperatorNamespace), r.writers().Orphans(req.Name))
	out.Barred = barred
	r.Changes.Refuse(req.Name, out.Refused(req.Name))
	r.Metrics.Applied(&p, out, r.Store.Size(req.Name), firstEvent)
	r.Orphans.Report(&p, out, f)
	// Whatever fails in the operator namespace: a restart that is due does not wait for it.
	r.Changes.Again(req.Name, r.Applier.PlanAgain(&p, f))

	late, err := r.tell(ctx, resources, &p, out)

	return resultOf(&p, out, late, err)
}
