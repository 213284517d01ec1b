package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// read returns the scopes of a namespace, each held by its finalizer before anything is made for it, and starts or ends
// the watches of the namespace. One that cannot be held is not among them, whoever is the reason: an author can make a scope so
// large that the API server takes nothing more, and the others, and what is to be revoked, must not wait for it. Nothing is made
// for it, and what is left of it goes, as of a scope that is gone. problem says which those are.
func (r *Reconciler) read(ctx context.Context, operatorNamespace string) (resources []resource, problem, err error) {
	found, err := list(ctx, r.Client, operatorNamespace, &r.written)
	if err != nil {
		return nil, nil, err
	}

	if found, err = r.fit(ctx, found); err != nil {
		return nil, nil, err
	}

	r.measureOnly(operatorNamespace, found)

	found = slices.DeleteFunc(found, func(nss resource) bool { return nss.isOver() })
	problems, isUnheld := make([]error, len(found)), make([]bool, len(found))

	_ = generic.InTurn(len(found), func(i int) error {
		// One that is left out serves nothing, so there is nothing to be taken back.
		if nss := &found[i]; !nss.leftOut {
			isUnheld[i], problems[i] = r.begin(ctx, nss)
		}

		return problems[i]
	})

	var unheld []resource

	for i := range found {
		if isUnheld[i] {
			unheld = append(unheld, found[i])
		} else {
			r.trim(&found[i])
			resources = append(resources, found[i])
		}
	}

	problem = worst(problems)
	if until := r.unheld.until(operatorNamespace, unheld, r.Time()); !until.IsZero() {
		// The next retry may be later.
		r.Changes.Again(scope.NamespaceScopes.In(operatorNamespace), until)

		return nil, nil, problem
	}

	// Marks that point to an operator namespace are no reason to watch it: anybody can write them. Where only members are
	// watched, they are read one by one, in the few namespaces that the operator namespace may access.
	if len(resources) > 0 || r.Writers.IsConfined() && r.Store.Projected(scope.NamespaceScopes.In(operatorNamespace)) {
		r.Watches.Watch(scope.NamespaceScopes.In(operatorNamespace))
	} else {
		r.Watches.Release(scope.NamespaceScopes.In(operatorNamespace))
	}

	return resources, problem, nil
}

// begin holds a scope before anything is made for it, and has its status say what has to be said before.
func (r *Reconciler) begin(ctx context.Context, nss *resource) (isUnheld bool, problem error) {
	if err := r.hold(ctx, nss); err != nil {
		nss.contested = apierrors.IsConflict(err)

		return true, err
	}

	return false, r.announce(ctx, nss)
}

// worst are the problems that are news; conflicts, which are none, where there is nothing else.
func worst(problems []error) error {
	if news := errors.Join(slices.DeleteFunc(slices.Clone(problems), apierrors.IsConflict)...); news != nil {
		return news
	}

	return errors.Join(problems...)
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
		return fmt.Errorf("nothing is projected for NamespaceScope %s/%s, on which no finalizer can be put: %w",
			nss.GetNamespace(), nss.GetName(), err)
	}

	r.note(nss)

	return nil
}

// announce has the status say that the scope injects into ClusterServiceVersions before anything is injected there: once the
// injector is turned off, or the scope deleted, nothing else says where to take it back. Where that cannot be said, the scope is
// served, and injects into none.
func (r *Reconciler) announce(ctx context.Context, nss *resource) error {
	if s := nss.compile(); s.Deleting() || !s.InjectCSVs || s.Injected {
		return nil
	}

	before, was := nss.before(), nss.status.DeepCopy()
	report.Announce(nss.status, nss.GetGeneration())

	if err := generic.WriteStatus(ctx, r.Client, nss.Object, before); err != nil {
		*nss.status = *was
		compiled := nss.compile
		nss.compile = func() scope.Scope {
			s := compiled()
			s.InjectCSVs = false

			return s
		}

		return err
	}

	r.note(nss)

	return nil
}

// measureOnly drops the metrics of scopes that are gone, also of one that went without waiting for Ambit.
func (r *Reconciler) measureOnly(operatorNamespace string, found []resource) {
	r.Metrics.Only(operatorNamespace, collect.Map(found, func(r resource) string { return grant.Short(r.owner) }))
}
