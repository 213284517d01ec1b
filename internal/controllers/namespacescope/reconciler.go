// Package namespacescope reconciles the scopes of one namespace together, because they share its operators and its watch
// lists.
package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/clusterwide"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/orphans"
	"github.com/ambit-k8s/ambit/internal/controllers/status"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
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

// tell writes what became of each scope, and lets go of those that are deleted. Scopes that are left out come last and do not
// keep the others for long: it says whether something of them is still to be written.
func (r *Reconciler) tell(ctx context.Context, resources []resource, p *plan.Plan, out *apply.Outcome) (late bool, err error) {
	turns := r.turns(resources, p)

	for _, write := range []func(int) error{
		func(i int) error { return r.report(ctx, resourceOf(resources, p.Scopes[i].Scope), p, out, i) },
		func(i int) error { return r.letGo(ctx, resourceOf(resources, p.Scopes[i].Scope), p, out, i) },
	} {
		errs := make([]error, 0, len(turns.first))

		for _, i := range turns.first {
			errs = append(errs, write(i))
		}

		if err := errors.Join(errs...); err != nil {
			return false, err
		}
	}

	began := time.Now()

	for _, i := range turns.last {
		if time.Since(began) > lateScopes {
			return true, nil
		}

		nss := resourceOf(resources, p.Scopes[i].Scope)

		// Of one that goes there is nothing to tell.
		if p.Scopes[i].Scope.Deleting() && finished(p, out, i) {
			err = r.letGo(ctx, nss, p, out, i)
		} else {
			err = r.report(ctx, nss, p, out, i)
		}

		if err != nil {
			return false, err
		}
	}

	return false, nil
}

// read returns the scopes of a namespace, each held by its finalizer before anything is made for it, and starts or ends
// the watches of the namespace.
func (r *Reconciler) read(ctx context.Context, operatorNamespace string) ([]resource, error) {
	found, err := list(ctx, r.Client, operatorNamespace, &r.written)
	if err != nil {
		return nil, err
	}

	if found, err = r.fit(ctx, found); err != nil {
		return nil, err
	}

	resources := make([]resource, 0, len(found))

	for i := range found {
		nss := found[i]
		if nss.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(nss, operatorv1.Finalizer) {
			continue
		}

		// One that is left out serves nothing, so there is nothing to be taken back.
		if !nss.leftOut {
			if err := r.hold(ctx, &nss); err != nil {
				return nil, err
			}

			if err := r.announce(ctx, &nss); err != nil {
				return nil, err
			}
		}

		r.trim(&nss)

		resources = append(resources, nss)
	}

	// Marks that point to an operator namespace are no reason to watch it: anybody can write them. Where only members are
	// watched, they are read one by one, in the few namespaces that the operator namespace may access.
	if len(resources) > 0 || r.isNamespaced() && r.Store.Projected(operatorNamespace) {
		r.Watches.Watch(operatorNamespace)
	} else {
		r.Watches.Release(operatorNamespace)
	}

	return resources, nil
}

func (r *Reconciler) hold(ctx context.Context, nss *resource) error {
	if nss.GetDeletionTimestamp() != nil {
		return nil
	}

	before := nss.before()
	if !controllerutil.AddFinalizer(nss, operatorv1.Finalizer) {
		return nil
	}

	change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, nss.Object, change); err != nil {
		return fmt.Errorf("putting the finalizer on NamespaceScope %s/%s: %w", nss.GetNamespace(), nss.GetName(), err)
	}

	r.note(nss)

	return nil
}

// announce has the status say that the scope injects into ClusterServiceVersions before anything is injected there: once the
// injector is turned off, or the scope deleted, nothing else says where to take it back.
func (r *Reconciler) announce(ctx context.Context, nss *resource) error {
	if s := nss.compile(); s.Deleting() || !s.InjectCSVs || s.Injected {
		return nil
	}

	before := nss.before()
	report.Announce(nss.status, nss.GetGeneration())

	if err := status.Write(ctx, r.Client, nss.Object, before); err != nil {
		return err
	}

	r.note(nss)

	return nil
}

// report writes the status of a scope if it differs, and after that the events that speak of it.
func (r *Reconciler) report(ctx context.Context, nss *resource, p *plan.Plan, out *apply.Outcome, i int) error {
	before, was := nss.before(), nss.status.DeepCopy()
	*nss.status = report.Status(p, out, i, was)
	r.Metrics.Scope(nss.GetNamespace(), nss.GetName(), len(nss.status.ValidatedMembers), len(nss.status.FailedMembers))
	report.Cut(nss.status, nss.room())

	var err error

	told := nss.status

	if !equality.Semantic.DeepEqual(was, nss.status) {
		if err = status.Write(ctx, r.Client, nss.Object, before); err != nil {
			// What was done is told even so: the next plan does not know of it any more.
			told = was
		} else {
			r.note(nss)
		}
	}

	r.trim(nss)

	for _, e := range report.EventsOf(p, out, i, was, told) {
		r.Recorder.Eventf(nss.Object, nil, e.Type(), e.Reason, e.Action, "%s", printable.Text(e.Message))
	}

	return err
}

// letGo takes the finalizer from a deleted scope for which nothing is left to do.
func (r *Reconciler) letGo(ctx context.Context, nss *resource, p *plan.Plan, out *apply.Outcome, i int) error {
	if !p.Scopes[i].Scope.Deleting() || !finished(p, out, i) {
		return nil
	}

	before := nss.before()
	controllerutil.RemoveFinalizer(nss, operatorv1.Finalizer)

	err := r.Client.Patch(ctx, nss.Object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))

	r.Metrics.Forget(nss.GetNamespace(), nss.GetName())
	r.note(nss)
	r.trim(nss)

	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the finalizer from NamespaceScope %s/%s: %w", nss.GetNamespace(), nss.GetName(), err)
	}

	return nil
}

func resourceOf(resources []resource, s *scope.Scope) *resource {
	for i := range resources {
		if resources[i].owner == s.Owner {
			return &resources[i]
		}
	}

	return nil
}
