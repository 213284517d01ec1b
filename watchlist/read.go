package watchlist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get reads an object of a namespace that is in scope, or one that has no namespace.
func (c *liveCache) Get(ctx context.Context, name client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	id, follows, err := c.kindOf(out)
	if err != nil {
		return err
	}

	if !follows {
		return c.fixed.Get(ctx, name, out, opts...) //nolint:wrapcheck // NotFound has to stay what it is
	}

	return c.read(ctx, name.Namespace, id, func(s *space) error { return s.cache.Get(ctx, name, out, opts...) })
}

// List reads the objects of one namespace that is in scope, or of all that are: those that cannot be read, or not yet, are left
// out; Ready names them.
func (c *liveCache) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	id, err := keyOf(out, c.opts.Scheme)
	if err != nil {
		return err
	}

	id.gvk.Kind = strings.TrimSuffix(id.gvk.Kind, "List")

	follows, err := c.follows(id.gvk)
	if err != nil {
		return err
	}

	if !follows {
		return c.fixed.List(ctx, out, opts...) //nolint:wrapcheck // it is controller-runtime's own answer
	}

	asked := client.ListOptions{}
	asked.ApplyOptions(opts)

	if asked.Continue != "" {
		return errors.New("a list of the cache is whole and cannot be continued")
	}

	if asked.Namespace != "" {
		return c.read(ctx, asked.Namespace, id, func(s *space) error { return s.cache.List(ctx, out, opts...) })
	}

	return c.listAll(ctx, id, out, asked)
}

func (c *liveCache) read(ctx context.Context, namespace string, id kindKey, read func(*space) error) error {
	if err := c.readable(ctx, id); err != nil {
		return err
	}

	s := c.space(namespace)
	if s == nil || namespace == "" {
		return notInScope(namespace)
	}

	if err := s.wait(ctx, id); err != nil {
		return err
	}

	if !s.reads.enter() {
		return notInScope(namespace)
	}
	defer s.reads.exit()

	return read(s)
}

// readable makes informers of a kind that is read for the first time, as controller-runtime does.
func (c *liveCache) readable(ctx context.Context, id kindKey) error {
	if !isClosed(c.started) {
		return &cache.ErrCacheNotStarted{}
	}

	if c.opts.ReaderFailOnMissingInformer {
		c.mu.RLock()
		_, known := c.kinds[id]
		c.mu.RUnlock()

		if !known {
			return &cache.ErrResourceNotCached{GVK: id.gvk}
		}

		return nil
	}

	_, err := c.remember(ctx, id)

	return err
}

func (c *liveCache) listAll(ctx context.Context, id kindKey, out client.ObjectList, asked client.ListOptions) error {
	if err := c.readable(ctx, id); err != nil {
		return err
	}

	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()

	if _, err := c.informer(waiting, id); err != nil {
		return err
	}

	var (
		items []runtime.Object
		limit = asked.Limit
	)

	for _, s := range c.inOrder() {
		found, err := s.list(ctx, id, out, asked)
		if err != nil {
			return err
		}

		items = append(items, found...)
		if limit > 0 && int64(len(items)) >= limit {
			break
		}

		asked.Limit = max(0, limit-int64(len(items)))
	}

	if err := meta.SetList(out, items); err != nil {
		return fmt.Errorf("listing %s: %w", id.gvk.Kind, err)
	}

	// What controller-runtime's own cache says, so that nobody takes the list for a page.
	out.SetContinue("continue-not-supported")

	return nil
}

func (s *space) list(
	ctx context.Context, id kindKey, like client.ObjectList, asked client.ListOptions,
) ([]runtime.Object, error) {
	f := s.feed(id)
	if f == nil || !f.informer.HasSynced() || !s.reads.enter() {
		return nil, nil
	}
	defer s.reads.exit()

	part, ok := like.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list", like)
	}

	if err := s.cache.List(ctx, part, &asked); err != nil {
		return nil, fmt.Errorf("listing the %s of namespace %s: %w", id.gvk.Kind, s.name, err)
	}

	items, err := meta.ExtractList(part)
	if err != nil {
		return nil, fmt.Errorf("listing the %s of namespace %s: %w", id.gvk.Kind, s.name, err)
	}

	return items, nil
}

func (c *liveCache) inOrder() []*space {
	c.mu.RLock()
	defer c.mu.RUnlock()

	out := make([]*space, 0, len(c.spaces))
	for _, name := range slices.Sorted(maps.Keys(c.spaces)) {
		out = append(out, c.spaces[name])
	}

	return out
}

func (c *liveCache) isLeaving(s *space) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return s.leaving
}
