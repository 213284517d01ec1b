package testbed

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var errNotListed = errors.New("not everything is listed")

// Watched reads the facts of an operator namespace anew as the manager does, by its watches, and without its help.
func Watched(ctx context.Context, c client.WithWatch, ops string) (*facts.Facts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	key, store := scope.NamespaceScopes.In(ops), read.NewStore(changes.New())
	watches := read.NewWatches(store, c, false)
	watches.Watch(key)

	go watches.Start(ctx) //nolint:errcheck // It ends with the context.

	var found *facts.Facts

	err := Until(20*time.Second, func() error {
		f, listed := store.Facts(key, time.Now())
		if !listed {
			return errNotListed
		}

		found = f

		return nil
	})

	return found, err
}
