package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ownKinds are Ambit's own kinds: what reads them, and what writes of them is Ambit's own.
type ownKinds struct {
	client.Client

	// known are the kinds where all namespaces are served, served the namespaces where only some are. The other is nil.
	known  *kinds.Kinds
	served *kinds.Namespaces
}

// readOwnKinds adds and returns what reads Ambit's own kinds, whether their definitions are there or not.
func readOwnKinds(
	m manager.Manager, s Settings, watches *read.Watches, dirty *changes.Changes, metered *report.Metrics,
) (*ownKinds, error) {
	var (
		r      = &ownKinds{}
		reader client.Reader
		err    error
	)

	changed := func() {
		dirty.EverythingChanged()
		dirty.KeyChanged(scope.TemplatesKey())
	}

	if len(s.Namespaces) > 0 {
		r.served, err = kinds.NewNamespaces(m, kinds.Options{Changed: changed, Missing: metered.Missing, Log: m.GetLogger()},
			s.Remembered.Scopes.Transform, s.User, s.Namespaces,
			kinds.What{Kinds: "NamespaceScopes", Role: "Role ambit-namespaced of config/rbac/namespaced"}, namespacescope.Kinds())
		reader = r.served
	} else {
		r.known, err = kinds.New(m, kinds.Options{
			Cache: m.GetCache(), Definition: watches.Definition, Changed: changed, Missing: metered.Missing, Log: m.GetLogger(),
		}, slices.Concat(namespacescope.Kinds(), template.Kinds())...)
		reader = r.known
	}

	if err != nil {
		return nil, fmt.Errorf("making what reads scopes: %w", err)
	}

	if r.Client, err = client.New(m.GetConfig(), client.Options{
		HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), Cache: &client.CacheOptions{Reader: reader},
	}); err != nil {
		return nil, fmt.Errorf("making the client of scopes: %w", err)
	}

	return r, errors.Join(r.follow(m, watches), addWatches(m, watches, r))
}

// follow has the kinds of all namespaces attended to. Those of single ones are with their namespaces.
func (r *ownKinds) follow(m manager.Manager, watches *read.Watches) error {
	if r.known == nil {
		return nil
	}

	for _, definition := range r.known.Definitions() {
		watches.FollowDefinition(definition, r.known.Wake)
	}

	return addTo(m, r.known, "what reads scopes")
}

// listed says what is missing until everything was listed that is watched cluster-wide, or in namespaces that are served.
func (r *ownKinds) listed(watches *read.Watches) error {
	if err := watches.Listed(); err != nil {
		return err
	}

	if r.served != nil {
		return r.served.Listed()
	}

	return r.known.Listed()
}

// waitFor waits until the kind of an object was listed in a namespace. It returns false when the context ends before.
func (r *ownKinds) waitFor(ctx context.Context, namespace string, object client.Object) bool {
	if r.served != nil {
		return r.served.Wait(ctx, namespace) && r.served.Kinds(namespace).WaitFor(ctx, object)
	}

	return r.known.WaitFor(ctx, object)
}

// addServed adds the controller of operator namespaces that open one by one.
func addServed(
	m manager.Manager, served *kinds.Namespaces, dirty *changes.Changes, inner changes.Reconciler, toKey changes.Handler,
) error {
	c, err := add(m, scope.NamespaceScopes, whenOpen(served, dirty, inner), namespacesAtOnce, dirty, nil)
	if err != nil {
		return err
	}

	served.OnOpen(func(namespace string, scopes *kinds.Kinds) error { return open(c, dirty, namespace, scopes, toKey) })

	return addTo(m, served, "the caches of scopes")
}

// whenOpen reconciles only namespaces that are open. Objects that were made for a closed one, in members of others, ask for a
// plan, too, and Ambit's marks on an object may name any namespace: nobody knows whether what is declared there still wants them.
func whenOpen(served *kinds.Namespaces, dirty *changes.Changes, inner changes.Reconciler) changes.Reconciler {
	return changes.ReconcilerFunc(func(ctx context.Context, key scope.Key) (reconcile.Result, error) {
		if !served.IsOpen(key.Namespace) {
			dirty.Forget(key)

			return reconcile.Result{}, nil
		}

		return inner.Reconcile(ctx, key)
	})
}

// open has the controller watch an operator namespace that has opened. Not before: a controller starts once everything that it
// was given to watch has been read, so one closed namespace would hold up the others.
func open(
	c changes.Controller, dirty *changes.Changes, namespace string, scopes *kinds.Kinds, toKey changes.Handler,
) error {
	if err := watch(c, sourcesOf(scopes, namespacescope.Kinds(), toKey)); err != nil {
		return err
	}

	// In place of the requests that came while it was closed: its last scope may have gone meanwhile, and left something behind.
	dirty.KeyChanged(scope.NamespaceScopes.In(namespace))

	return nil
}
