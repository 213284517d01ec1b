package watchlist

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// form is how objects of a kind are represented. Each form has an informer of its own, as in controller-runtime.
type form int

const (
	typed form = iota
	dynamic
	metadata
)

type kindKey struct {
	gvk  schema.GroupVersionKind
	form form
}

func keyOf(object runtime.Object, scheme *runtime.Scheme) (kindKey, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return kindKey{}, fmt.Errorf("looking up the kind of %T: %w", object, err)
	}

	switch object.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return kindKey{gvk: gvk, form: metadata}, nil
	case runtime.Unstructured:
		return kindKey{gvk: gvk, form: dynamic}, nil
	default:
		return kindKey{gvk: gvk, form: typed}, nil
	}
}

// blank makes an empty object of a kind, for which a cache makes an informer.
func blank(id kindKey, scheme *runtime.Scheme) (client.Object, error) {
	switch id.form {
	case dynamic:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(id.gvk)

		return u, nil
	case metadata:
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(id.gvk)

		return m, nil
	default:
		object, err := scheme.New(id.gvk)
		if err != nil {
			return nil, fmt.Errorf("making a %s: %w", id.gvk.Kind, err)
		}

		out, ok := object.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T has no metadata", object)
		}

		return out, nil
	}
}

// kind is what controllers see as an informer. It remembers what they asked for, for namespaces that join later.
type kind struct {
	id    kindKey
	cache *liveCache

	// The lock of liveCache guards the fields below.
	registrations []*registration
	indexers      toolscache.Indexers
	fields        map[string]client.IndexerFunc
	removed       bool
}

// registration is one handler of a kind, in all namespaces.
type registration struct {
	kind    *kind
	handler toolscache.ResourceEventHandler
	options toolscache.HandlerOptions

	// parts is guarded by the lock of liveCache.
	parts map[*space]toolscache.ResourceEventHandlerRegistration

	latch
}

// latch is closed once a condition holds, and stays so: what joins later does not undo it.
type latch struct {
	once, watch sync.Once
	closed      chan struct{}
}

func newLatch() latch { return latch{closed: make(chan struct{})} }

// holds asks the condition until it has held once.
func (l *latch) holds(condition func() bool) bool {
	if isClosed(l.closed) {
		return true
	}

	if !condition() {
		return false
	}

	l.once.Do(func() { close(l.closed) })

	return true
}

// wait closes the latch once the condition holds. It looks at it only if somebody waits, and no longer than the cache lives.
func (l *latch) wait(end <-chan struct{}, condition func() bool) <-chan struct{} {
	l.watch.Do(func() {
		if !l.holds(condition) {
			go until(func() bool { return l.holds(condition) }, end)
		}
	})

	return l.closed
}

// HasSynced says whether the handler has seen all that was there at first.
func (r *registration) HasSynced() bool { return r.holds(r.synced) }

// HasSyncedChecker is HasSynced as a channel.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r }

// Name is for logs.
func (r *registration) Name() string { return "watchlist handler of " + r.kind.id.gvk.String() }

// Done is closed when HasSynced says yes.
func (r *registration) Done() <-chan struct{} { return r.wait(r.kind.cache.end, r.synced) }

func (r *registration) synced() bool {
	c := r.kind.cache
	if !c.begun() {
		return false
	}

	c.mu.RLock()
	defer c.mu.RUnlock()

	for _, s := range c.spaces {
		part, added := r.parts[s]
		if !s.open || !added || part.HasSynced() {
			continue
		}

		if f := s.feed(r.kind.id); f != nil && f.settled() && !f.informer.HasSynced() {
			continue // it cannot be watched, and keeps nobody waiting
		}

		return false
	}

	return true
}

// AddEventHandler adds a handler in every namespace, now and later.
func (k *kind) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return k.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod is AddEventHandler with a period of its own.
func (k *kind) AddEventHandlerWithResyncPeriod(
	h toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return k.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions is AddEventHandler with options.
func (k *kind) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	c := k.cache
	r := &registration{
		kind: k, handler: h, options: options, latch: newLatch(), parts: map[*space]toolscache.ResourceEventHandlerRegistration{},
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if k.removed {
		return nil, fmt.Errorf("the informer of %s was removed", k.id.gvk.Kind)
	}

	for _, s := range c.spaces {
		if err := r.join(s); err != nil {
			r.drop()

			return nil, err
		}
	}

	k.registrations = append(k.registrations, r)

	return r, nil
}

// join adds the handler in a namespace, unless that is not open yet, or no longer.
func (r *registration) join(s *space) error {
	f := s.feed(r.kind.id)
	if f == nil || !s.open || s.leaving {
		return nil
	}

	part, err := f.informer.AddEventHandlerWithOptions(&gated{gate: &s.work, inner: r.handler}, r.options)
	if err != nil {
		return fmt.Errorf("watching the %s of namespace %s: %w", r.kind.id.gvk.Kind, s.name, err)
	}

	r.parts[s] = part

	return nil
}

func (r *registration) drop() {
	for s, part := range r.parts {
		if f := s.feed(r.kind.id); f != nil {
			_ = f.informer.RemoveEventHandler(part) // it has no error but that the handler is another's
		}
	}

	clear(r.parts)
}

// RemoveEventHandler removes a handler from every namespace.
func (k *kind) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.kind != k {
		return errors.New("the handler was not added to this informer")
	}

	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()

	r.drop()

	k.registrations = slices.DeleteFunc(k.registrations, func(other *registration) bool { return other == r })

	return nil
}

// AddIndexers adds indexes in every namespace, now and later.
func (k *kind) AddIndexers(indexers toolscache.Indexers) error {
	c := k.cache

	c.mu.Lock()
	defer c.mu.Unlock()

	for name := range indexers {
		if _, taken := k.indexers[name]; taken {
			return fmt.Errorf("%s has an index %q already", k.id.gvk.Kind, name)
		}
	}

	for _, s := range c.spaces {
		if f := s.feed(k.id); f != nil {
			if err := f.informer.AddIndexers(indexers); err != nil {
				return fmt.Errorf("indexing the %s of namespace %s: %w", k.id.gvk.Kind, s.name, err)
			}
		}
	}

	maps.Copy(k.indexers, indexers)

	return nil
}

// HasSynced says whether every namespace has been read that can be.
func (k *kind) HasSynced() bool {
	c := k.cache
	if !c.begun() {
		return false
	}

	c.mu.RLock()
	defer c.mu.RUnlock()

	for _, s := range c.spaces {
		if f := s.feed(k.id); s.open && f != nil && !f.settled() {
			return false
		}
	}

	return true
}

// HasSyncedChecker is HasSynced as a channel.
func (k *kind) HasSyncedChecker() toolscache.DoneChecker {
	return &kindChecker{kind: k, latch: newLatch()}
}

// IsStopped says whether the informer was removed or the cache ended.
func (k *kind) IsStopped() bool {
	k.cache.mu.RLock()
	defer k.cache.mu.RUnlock()

	return k.removed || isClosed(k.cache.end)
}

type kindChecker struct {
	kind *kind
	latch
}

// Name is for logs.
func (k *kindChecker) Name() string { return "watchlist informer of " + k.kind.id.gvk.String() }

// Done is closed when the informer has synced.
func (k *kindChecker) Done() <-chan struct{} { return k.wait(k.kind.cache.end, k.kind.HasSynced) }

// gated hands on events as long as the namespace is served.
type gated struct {
	gate  *gate
	inner toolscache.ResourceEventHandler
}

// OnAdd hands on an add.
func (g *gated) OnAdd(object any, initial bool) {
	if g.gate.enter() {
		defer g.gate.exit()

		g.inner.OnAdd(object, initial)
	}
}

// OnUpdate hands on an update.
func (g *gated) OnUpdate(before, after any) {
	if g.gate.enter() {
		defer g.gate.exit()

		g.inner.OnUpdate(before, after)
	}
}

// OnDelete hands on a deletion at the API server. A namespace that leaves causes none.
func (g *gated) OnDelete(object any) {
	if g.gate.enter() {
		defer g.gate.exit()

		g.inner.OnDelete(object)
	}
}
