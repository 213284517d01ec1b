package kinds

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Get reads an object. Of a kind that is missing there is none.
func (k *Kinds) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return k.read(object, func() error {
		return k.Cache.Get(ctx, key, object, opts...)
	}, func(one *kind) error { return apierrors.NewNotFound(one.resource, key.Name) })
}

// List reads the objects of a kind. Of one that is missing there are none.
func (k *Kinds) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return k.read(list, func() error {
		return k.Cache.List(ctx, list, opts...)
	}, func(*kind) error { return meta.SetList(list, nil) })
}

// read reads objects of a kind that is listed; one that is known to be missing has none.
func (k *Kinds) read(into runtime.Object, listed func() error, missing func(*kind) error) error {
	one := k.of(into)
	if one == nil {
		return fmt.Errorf("%T is not read here", into)
	}

	k.mu.RLock()
	defer k.mu.RUnlock()

	switch {
	case one.listed:
		return listed()
	case one.isDecided():
		return missing(one)
	default:
		return fmt.Errorf("the %s have not been read", one.definition)
	}
}

// Source passes the objects of a kind to a controller, each time that the kind comes. Until it was first listed or found
// missing the controller does not start.
func (k *Kinds) Source(object client.Object, handle changes.Handler) changes.Source {
	return &subscription{kinds: k, one: k.of(object), handler: handle}
}

// subscription hands on what an informer reports.
type subscription struct {
	kinds   *Kinds
	one     *kind
	handler changes.Handler
	running context.Context //nolint:containedctx // The life of the controller, within which informers come and go.
	queue   changes.Queue
}

// String names the source in the log.
func (s *subscription) String() string { return "kind source: " + s.one.definition }

// Start begins to hand on what the informer reports, and each one that comes after it.
func (s *subscription) Start(ctx context.Context, q changes.Queue) error {
	s.running, s.queue = ctx, q

	s.kinds.mu.Lock()
	defer s.kinds.mu.Unlock()

	s.one.sources = append(s.one.sources, s)

	if s.one.informer != nil {
		s.handle(s.one.informer)
	}

	return nil
}

// WaitForSync waits until there is something to reconcile by.
func (s *subscription) WaitForSync(ctx context.Context) error {
	select {
	case <-s.one.decided:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting until the %s are listed: %w", s.one.definition, ctx.Err())
	}
}

// handle hands on what an informer reports. It fails only for one that has ended, and then there will be another.
func (s *subscription) handle(informer cache.Informer) {
	_ = (&source.TypedInformer[client.Object, scope.Key]{Informer: informer, Handler: s.handler}).Start(s.running, s.queue)
}
