package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/namespaces"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
)

// scopesOf returns what reads scopes, and writes what is Ambit's own: the manager's client, or, with operator namespaces, one
// that reads from theirs.
func scopesOf(m manager.Manager, s Settings) (client.Client, *namespaces.Served, error) {
	if len(s.Namespaces) == 0 {
		return m.GetClient(), nil, nil
	}

	served, err := namespaces.New(m, m.GetLogger(), s.User, s.Namespaces, namespacescope.Kinds())
	if err != nil {
		return nil, nil, fmt.Errorf("making the caches of scopes: %w", err)
	}

	c, err := client.New(m.GetConfig(), client.Options{
		HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), Cache: &client.CacheOptions{Reader: served},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the client of scopes: %w", err)
	}

	return c, served, nil
}

// addServed adds the controller of operator namespaces that open one by one.
func addServed(
	m manager.Manager, heard *changes.Changes, served *namespaces.Served, r *namespacescope.Reconciler, toKey handler.EventHandler,
) error {
	whenOpen := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		// What other operator namespaces' members hold of a closed one asks for a plan, too. Nobody knows whether its scopes still
		// want it.
		if !served.IsOpen(req.Name) {
			return reconcile.Result{}, nil
		}

		return r.Reconcile(ctx, req)
	})

	c, err := add(m, "home", whenOpen, namespacesAtOnce, heard.Start, nil, toKey)
	if err != nil {
		return err
	}

	served.OnOpen(func(namespace string, scopes cache.Cache) error { return open(c, heard, namespace, scopes, toKey) })

	if err := m.Add(served); err != nil {
		return fmt.Errorf("adding the caches of scopes: %w", err)
	}

	return nil
}

// open has the controller watch an operator namespace that has opened. Only now, because it begins when all that it watched
// before was read.
func open(
	c controller.Controller, heard *changes.Changes, namespace string, scopes cache.Cache, toKey handler.EventHandler,
) error {
	sources := make([]source.Source, 0, len(namespacescope.Kinds()))
	for _, kind := range namespacescope.Kinds() {
		sources = append(sources, source.Kind(scopes, kind, toKey))
	}

	if err := watch(c, sources); err != nil {
		return err
	}

	// For what was asked while it was closed; its last scope may have gone meanwhile, and left something behind.
	heard.KeyChanged(namespace)

	return nil
}
