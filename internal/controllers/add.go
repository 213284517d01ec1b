package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// namespacesAtOnce is how many namespaces are reconciled at once; the writes of each are parallel by themselves.
	// One that hangs, or computes for long, keeps its place for itself.
	namespacesAtOnce = 16
	// untilListed is how long a controller waits for its kinds: as long as it takes. One that cannot be listed must not end the
	// manager, which has others to serve.
	untilListed = 10 * 365 * 24 * time.Hour
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// add makes the controller of a family, which is asked by what is dirty and by its resources.
func add(
	m manager.Manager, family scope.Family, r reconcile.Reconciler, atOnce int, dirty *changes.Changes, sources []source.Source,
) (controller.Controller, error) {
	c, err := controller.New(string(family), m, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: atOnce,
		RateLimiter: newBackOff(), CacheSyncTimeout: untilListed,
	})
	if err != nil {
		return nil, fmt.Errorf("making the controller: %w", err)
	}

	hearing := source.Func(func(_ context.Context, q queue) error {
		dirty.Start(family, q)

		return nil
	})

	return c, watch(c, append(sources, hearing))
}

func sourcesOf(known *kinds.Kinds, objects []client.Object, handle handler.EventHandler) []source.Source {
	sources := make([]source.Source, 0, len(objects))

	for _, object := range objects {
		sources = append(sources, known.Source(object, handle))
	}

	return sources
}

func watch(c controller.Controller, sources []source.Source) error {
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}

	return nil
}
