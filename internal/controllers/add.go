package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// namespacesAtOnce is how many namespaces are reconciled at once; the writes of each are parallel by themselves. A reconcile
	// that hangs, or computes for long, occupies one of these places and no other.
	namespacesAtOnce = 16
	// untilListed is how long a controller waits for its kinds: as long as it takes. A kind that cannot be listed must not end the
	// manager, which has other kinds to serve.
	untilListed = 10 * 365 * 24 * time.Hour
)

// add makes the controller of a family, whose requests come from dirty and from the sources.
func add(
	m manager.Manager, family scope.Family, r changes.Reconciler, atOnce int, dirty *changes.Changes, sources []changes.Source,
) (changes.Controller, error) {
	c, err := controller.NewTyped(family.String(), m, controller.TypedOptions[scope.Key]{
		Reconciler: r, MaxConcurrentReconciles: atOnce,
		RateLimiter: newBackOff(), CacheSyncTimeout: untilListed, LogConstructor: logOf(m, family),
	})
	if err != nil {
		return nil, fmt.Errorf("making the controller: %w", err)
	}

	dirty.Expect(family)

	hearing := changes.SourceFunc(func(_ context.Context, q changes.Queue) error {
		dirty.Start(family, q)

		return nil
	})

	return c, watch(c, append(sources, hearing))
}

func addTo(m manager.Manager, runs manager.Runnable, what string) error {
	if err := m.Add(runs); err != nil {
		return fmt.Errorf("adding %s: %w", what, err)
	}

	return nil
}

// logOf names a request in the log as controller-runtime names one by the name of an object.
func logOf(m manager.Manager, family scope.Family) func(*scope.Key) logr.Logger {
	log := m.GetControllerOptions().Logger.WithValues("controller", family.String())

	return func(key *scope.Key) logr.Logger {
		if key == nil {
			return log
		}

		return log.WithValues("object", klog.KRef("", key.String()), "namespace", "", "name", key.String())
	}
}

func sourcesOf(known *kinds.Kinds, objects []client.Object, handle changes.Handler) []changes.Source {
	return collect.Map(objects, func(object client.Object) changes.Source { return known.Source(object, handle) })
}

func watch(c changes.Controller, sources []changes.Source) error {
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}

	return nil
}
