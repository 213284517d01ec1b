package watchlist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// liveCache is the manager's cache.
type liveCache struct {
	list *List
	cfg  *rest.Config
	opts cache.Options
	// fixed serves kinds without a namespace, and those whose namespaces the operator fixed. perSpace are the options of the other
	// kinds.
	fixed     cache.Cache
	fixedFor  map[schema.GroupVersionKind]bool
	perSpace  map[client.Object]cache.ByObject
	handshake *handshake

	// started is closed by Start, first when the first list was taken in or did not come in time, and end when the cache ended.
	started, first, end chan struct{}
	kick                chan struct{}

	mu     sync.RWMutex
	spaces map[string]*space
	kinds  map[kindKey]*kind

	state listState
}

func newLiveCache(list *List, cfg *rest.Config, opts cache.Options) (*liveCache, error) {
	if len(opts.DefaultNamespaces) > 0 {
		return nil, errors.New("cache.Options.DefaultNamespaces and a list of namespaces are two sources for the same; " +
			"leave DefaultNamespaces out")
	}

	if opts.Scheme == nil || opts.Mapper == nil || opts.HTTPClient == nil {
		return nil, errors.New("the cache needs a scheme, a mapper and an HTTP client, as a manager gives them: they are " +
			"shared by all namespaces")
	}

	c := &liveCache{
		list: list, cfg: cfg, opts: opts, fixedFor: map[schema.GroupVersionKind]bool{}, perSpace: map[client.Object]cache.ByObject{},
		started: make(chan struct{}), first: make(chan struct{}), end: make(chan struct{}), kick: make(chan struct{}, 1),
		spaces: map[string]*space{}, kinds: map[kindKey]*kind{}, handshake: newHandshake(cfg, opts.HTTPClient, list),
		state: listState{failed: map[string]error{}},
	}

	fixed := opts
	fixed.ByObject = map[client.Object]cache.ByObject{}

	for object, by := range opts.ByObject {
		gvk, err := apiutil.GVKForObject(object, opts.Scheme)
		if err != nil {
			return nil, fmt.Errorf("looking up the kind of %T: %w", object, err)
		}

		namespaced, err := apiutil.IsGVKNamespaced(gvk, opts.Mapper)
		if err != nil {
			return nil, fmt.Errorf("looking up whether %s has a namespace: %w", gvk.Kind, err)
		}

		if namespaced && by.Namespaces == nil {
			c.perSpace[object] = by

			continue
		}

		fixed.ByObject[object] = by
		c.fixedFor[gvk] = true
	}

	var err error
	if c.fixed, err = cache.New(cfg, fixed); err != nil {
		return nil, fmt.Errorf("making a cache for what has no namespace: %w", err)
	}

	return c, nil
}

func (c *liveCache) begun() bool { return isClosed(c.first) }

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// until waits until a condition holds, and says whether it does: it may not once one of the ends is closed.
func until(condition func() bool, ends ...<-chan struct{}) bool {
	tick := time.NewTicker(pollSync)
	defer tick.Stop()

	for !condition() {
		if slices.ContainsFunc(ends, isClosed) {
			return false
		}

		<-tick.C
	}

	return true
}

// follows says whether a kind's namespaces are those of the list.
func (c *liveCache) follows(gvk schema.GroupVersionKind) (bool, error) {
	if c.fixedFor[gvk] {
		return false, nil
	}

	// Callers look for a NoKindMatchError, and its words say all.
	return apiutil.IsGVKNamespaced(gvk, c.opts.Mapper) //nolint:wrapcheck // as above
}

// kindOf is the kind of an object, and whether its namespaces are those of the list.
func (c *liveCache) kindOf(object client.Object) (id kindKey, follows bool, err error) {
	if id, err = keyOf(object, c.opts.Scheme); err == nil {
		follows, err = c.follows(id.gvk)
	}

	return id, follows, err
}

// GetInformer returns an informer for every namespace that is or will be served.
func (c *liveCache) GetInformer(
	ctx context.Context, object client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	id, follows, err := c.kindOf(object)
	if err != nil {
		return nil, err
	}

	if !follows {
		return c.fixed.GetInformer(ctx, object, opts...) //nolint:wrapcheck // it is controller-runtime's own answer
	}

	return c.informer(ctx, id, opts...)
}

// GetInformerForKind is GetInformer for a kind of the scheme.
func (c *liveCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	follows, err := c.follows(gvk)
	if err != nil {
		return nil, err
	}

	if !follows {
		return c.fixed.GetInformerForKind(ctx, gvk, opts...) //nolint:wrapcheck // it is controller-runtime's own answer
	}

	return c.informer(ctx, kindKey{gvk: gvk}, opts...)
}

func (c *liveCache) informer(ctx context.Context, id kindKey, opts ...cache.InformerGetOption) (cache.Informer, error) {
	k, err := c.remember(ctx, id)
	if err != nil {
		return nil, err
	}

	var asked cache.InformerGetOptions
	for _, o := range opts {
		o(&asked)
	}

	if isClosed(c.started) && (asked.BlockUntilSynced == nil || *asked.BlockUntilSynced) {
		if !toolscache.WaitForCacheSync(ctx.Done(), k.HasSynced) {
			return nil, fmt.Errorf("waiting for the %s of the namespaces in scope: %w", id.gvk.Kind, ctx.Err())
		}
	}

	return k, nil
}

// remember makes the informers of a kind, in the namespaces of now and of later.
func (c *liveCache) remember(ctx context.Context, id kindKey) (*kind, error) {
	c.mu.RLock()
	k, known := c.kinds[id]
	c.mu.RUnlock()

	if known {
		return k, nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if k, known := c.kinds[id]; known {
		return k, nil
	}

	k = &kind{id: id, cache: c, indexers: toolscache.Indexers{}, fields: map[string]client.IndexerFunc{}}

	for _, s := range c.spaces {
		if err := k.join(ctx, s); err != nil {
			for _, s := range c.spaces {
				k.leave(ctx, s)
			}

			return nil, err
		}
	}

	c.kinds[id] = k

	return k, nil
}

// join makes the informer of a kind in a namespace, with its indexes and without its handlers.
func (k *kind) join(ctx context.Context, s *space) error {
	if s.leaving {
		return nil
	}

	object, err := blank(k.id, k.cache.opts.Scheme)
	if err != nil {
		return err
	}

	if _, err := s.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watching the %s of namespace %s: %w", k.id.gvk.Kind, s.name, err)
	}

	f := s.feed(k.id)
	if f == nil {
		return fmt.Errorf("the informer of %s was made for another kind", k.id.gvk.Kind)
	}

	for name, extract := range k.fields {
		if err := s.cache.IndexField(ctx, object, name, extract); err != nil {
			return fmt.Errorf("indexing the %s of namespace %s: %w", k.id.gvk.Kind, s.name, err)
		}
	}

	if err := f.informer.AddIndexers(maps.Clone(k.indexers)); err != nil {
		return fmt.Errorf("indexing the %s of namespace %s: %w", k.id.gvk.Kind, s.name, err)
	}

	return nil
}

func (k *kind) leave(ctx context.Context, s *space) {
	if object, err := blank(k.id, k.cache.opts.Scheme); err == nil {
		_ = s.cache.RemoveInformer(ctx, object) // it has no error but for kinds that are not in the scheme
	}

	s.forget(k.id)
}

// RemoveInformer ends the informers of a kind in every namespace, and forgets its handlers and indexes.
func (c *liveCache) RemoveInformer(ctx context.Context, object client.Object) error {
	id, follows, err := c.kindOf(object)
	if err != nil {
		return err
	}

	if !follows {
		return c.fixed.RemoveInformer(ctx, object) //nolint:wrapcheck // it is controller-runtime's own answer
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	k, known := c.kinds[id]
	if !known {
		return nil
	}

	for _, s := range c.spaces {
		k.leave(ctx, s)
	}

	k.removed = true
	k.registrations = nil
	delete(c.kinds, id)

	return nil
}

// IndexField adds an index in every namespace that is or will be served.
func (c *liveCache) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	id, follows, err := c.kindOf(object)
	if err != nil {
		return err
	}

	if !follows {
		return c.fixed.IndexField(ctx, object, field, extract) //nolint:wrapcheck // it is controller-runtime's own answer
	}

	k, err := c.remember(ctx, id)
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if _, taken := k.fields[field]; taken {
		return fmt.Errorf("%s has an index of field %q already", id.gvk.Kind, field)
	}

	for _, s := range c.spaces {
		if s.leaving {
			continue
		}

		if err := s.cache.IndexField(ctx, object, field, extract); err != nil {
			return fmt.Errorf("indexing the %s of namespace %s: %w", id.gvk.Kind, s.name, err)
		}
	}

	k.fields[field] = extract

	return nil
}

// WaitForCacheSync waits for the list, and for what can be read of the namespaces that were in it at the start. One that joins
// later, or that cannot be read, keeps nobody waiting.
func (c *liveCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.first:
	case <-ctx.Done():
		return false
	}

	if !c.fixed.WaitForCacheSync(ctx) {
		return false
	}

	return until(c.synced, ctx.Done())
}

func (c *liveCache) synced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()

	for _, s := range c.spaces {
		if s.open && !s.settled() {
			return false
		}
	}

	return true
}

// NeedLeaderElection lets caches run in standbys, too.
func (c *liveCache) NeedLeaderElection() bool { return false }

// space returns the space that serves a namespace, if any does.
func (c *liveCache) space(namespace string) *space {
	c.mu.RLock()
	defer c.mu.RUnlock()

	if s, served := c.spaces[namespace]; served {
		return s
	}

	return c.spaces[""]
}

func (c *liveCache) served() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return slices.Sorted(maps.Keys(c.spaces))
}
