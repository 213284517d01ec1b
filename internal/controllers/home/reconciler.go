// Package home reconciles the scopes of one namespace together, because they share its operators and its watch lists.
package home

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
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Reconciler keeps the cluster true to the scopes of a namespace.
type Reconciler struct {
	// Client reads scopes from the cache, and writes their status and finalizers, which are Ambit's own.
	Client   client.Client
	Store    *read.Store
	Watches  *read.Watches
	Applier  *apply.Applier
	Recorder events.EventRecorder
	Metrics  *report.Metrics
	Changes  *Changes

	// Homes are the namespaces that are served; empty means all. What other managers projected for other homes is theirs.
	Homes []string
	// AmbitNamespace is where Ambit runs; labels never select it.
	AmbitNamespace string
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// DefaultDelegate is the service account that scopes write as which name none; empty means Ambit itself.
	DefaultDelegate string

	written written
}

// Reconcile reads, compiles, plans, applies and reports, for the namespace that the request names.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if len(r.Homes) > 0 && !slices.Contains(r.Homes, req.Name) {
		return reconcile.Result{}, nil
	}

	learned := r.Changes.take(req.Name)

	resources, err := r.read(ctx, req.Name)
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // Quiet, with the back-off of the queue.
	}

	if err != nil || len(resources) == 0 && !r.Store.Projected(req.Name) {
		return reconcile.Result{}, err
	}

	if r.written.ahead(resources) {
		return reconcile.Result{}, nil // The cache is about to tell of a write of Ambit's own, and then asks for a plan.
	}

	scopes := r.compile(resources)
	// Before the facts are taken, so that no change of a namespace falls between the two.
	r.Changes.follow(req.Name, scopes)

	f, listed := r.Store.Facts(req.Name, time.Now())
	if !listed {
		return reconcile.Result{}, nil // The store tells once it has listed everything.
	}

	f.AmbitNamespace, f.RestartInterval = r.AmbitNamespace, r.RestartInterval
	p := plan.New(scopes, f)

	identities, err := r.identities(&p)
	if err != nil {
		return reconcile.Result{}, err
	}

	out := r.Applier.Apply(ctx, &p, identities)
	r.Changes.refuse(req.Name, out.Refused(req.Name))
	r.Metrics.Applied(&p, out, r.Store.Size(req.Name), learned)

	if err := r.report(ctx, resources, &p, out); err != nil {
		return result(&p, out, err)
	}

	return result(&p, out, r.letGo(ctx, resources, &p, out))
}

// read returns the scopes of a namespace, each held by its finalizer before anything is made for it, and starts or ends
// the watches of the namespace.
func (r *Reconciler) read(ctx context.Context, home string) ([]*operatorv1.NamespaceScope, error) {
	var list operatorv1.NamespaceScopeList
	if err := r.Client.List(ctx, &list, client.InNamespace(home)); err != nil {
		return nil, fmt.Errorf("listing the NamespaceScopes of namespace %s: %w", home, err)
	}

	r.written.keep(home, list.Items)

	resources := make([]*operatorv1.NamespaceScope, 0, len(list.Items))

	for i := range list.Items {
		nss := list.Items[i].DeepCopy()
		if nss.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(nss, operatorv1.Finalizer) {
			continue
		}

		if err := r.hold(ctx, nss); err != nil {
			return nil, err
		}

		resources = append(resources, nss)
	}

	if len(resources) == 0 && !r.Store.Projected(home) {
		r.Watches.Release(home)
		r.Changes.forget(home)
	} else {
		r.Watches.Watch(home)
	}

	return resources, nil
}

func (r *Reconciler) hold(ctx context.Context, nss *operatorv1.NamespaceScope) error {
	if nss.DeletionTimestamp != nil {
		return nil
	}

	before := nss.DeepCopy()
	if !controllerutil.AddFinalizer(nss, operatorv1.Finalizer) {
		return nil
	}

	if err := r.Client.Patch(ctx, nss, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("putting the finalizer on NamespaceScope %s/%s: %w", nss.Namespace, nss.Name, err)
	}

	r.written.note(nss)

	return nil
}

func (r *Reconciler) compile(resources []*operatorv1.NamespaceScope) []scope.Scope {
	scopes := make([]scope.Scope, 0, len(resources))

	for _, nss := range resources {
		s := compile.NamespaceScope(nss)
		if s.Delegate == "" {
			s.Delegate = r.DefaultDelegate
		}

		scopes = append(scopes, s)
	}

	return scopes
}

// identities says who writes for each scope of a plan.
func (r *Reconciler) identities(p *plan.Plan) ([]apply.Identity, error) {
	out := make([]apply.Identity, len(p.Scopes))

	for i := range p.Scopes {
		s := p.Scopes[i].Scope
		if s.Delegate == "" {
			out[i] = apply.Own()

			continue
		}

		id, err := apply.ServiceAccount(s.Home, s.Delegate)
		if err != nil {
			return nil, fmt.Errorf("scope %s: %w", s.Owner, err)
		}

		out[i] = id
	}

	return out, nil
}

// report writes each status that differs, and after that the events that speak of it.
func (r *Reconciler) report(
	ctx context.Context, resources []*operatorv1.NamespaceScope, p *plan.Plan, out *apply.Outcome,
) error {
	var errs []error

	for i := range p.Scopes {
		nss := resourceOf(resources, p.Scopes[i].Scope)
		before := nss.DeepCopy()
		nss.Status = report.Status(p, out, i, &before.Status)
		r.Metrics.Scope(nss.Namespace, nss.Name, len(nss.Status.ValidatedMembers), len(nss.Status.FailedMembers))

		if !equality.Semantic.DeepEqual(before.Status, nss.Status) {
			err := r.Client.Status().Patch(ctx, nss, client.MergeFrom(before))
			if err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("writing the status of NamespaceScope %s/%s: %w", nss.Namespace, nss.Name, err))

				continue
			}

			r.written.note(nss)
		}

		for _, e := range report.EventsOf(p, out, i, &before.Status, &nss.Status) {
			r.Recorder.Eventf(nss, nil, eventType(e), e.Reason, e.Action, "%s", e.Message)
		}
	}

	return errors.Join(errs...)
}

// letGo takes the finalizer from deleted scopes for which nothing is left to do.
func (r *Reconciler) letGo(
	ctx context.Context, resources []*operatorv1.NamespaceScope, p *plan.Plan, out *apply.Outcome,
) error {
	var errs []error

	for i := range p.Scopes {
		if !p.Scopes[i].Scope.Deleting() || !finished(p, out, i) {
			continue
		}

		nss := resourceOf(resources, p.Scopes[i].Scope)
		before := nss.DeepCopy()
		controllerutil.RemoveFinalizer(nss, operatorv1.Finalizer)

		err := r.Client.Patch(ctx, nss, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("taking the finalizer from NamespaceScope %s/%s: %w", nss.Namespace, nss.Name, err))
		}

		r.Metrics.Forget(nss.Namespace, nss.Name)
		r.written.note(nss)
	}

	return errors.Join(errs...)
}

func resourceOf(resources []*operatorv1.NamespaceScope, s *scope.Scope) *operatorv1.NamespaceScope {
	for _, nss := range resources {
		if nss.Name == s.Owner.Name && operatorv1.GroupVersion.Group == s.Owner.Group {
			return nss
		}
	}

	return nil
}
