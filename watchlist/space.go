package watchlist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// settleTime is for how long the watches of a namespace that joins may fail before its events begin without them.
	settleTime = 2 * time.Second
	// syncTime is for how long they may say nothing at all.
	syncTime = 15 * time.Second
	// pollSync is how often a condition that is waited for is checked.
	pollSync = 20 * time.Millisecond
)

// space is one namespace that is served, or all of them: a cache with a life of its own.
type space struct {
	name  string
	cache cache.Cache
	// work is open to handlers and reconcilers, reads to reads. Work ends first, then come the hooks, then reads end.
	work, reads gate

	cancel context.CancelFunc
	done   chan struct{}
	// warned says that an event was written about a watch that fails. One is enough: the metric counts them, and Ready shows the
	// current state.
	warned atomic.Bool

	// The lock of liveCache guards these: whether handlers get events, and whether the namespace is leaving.
	open, leaving bool

	mu    sync.Mutex
	feeds map[kindKey]*feed
}

// String is the space for people.
func (s *space) String() string {
	if s.name == "" {
		return "all namespaces"
	}

	return "namespace " + s.name
}

// feed is the informer of one kind in one namespace, and the state of its watch.
type feed struct {
	informer toolscache.SharedIndexInformer

	mu    sync.Mutex
	err   error
	since time.Time
}

func (f *feed) note(err error) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if errors.Is(err, context.Canceled) {
		return false
	}

	changed = (err == nil) != (f.err == nil)
	if err != nil && f.err == nil {
		f.since = time.Now()
	}

	f.err = err

	return changed
}

func (f *feed) failure() (since time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.since, f.err
}

// settled says that there is nothing to wait for: the informer has synced, or has failed for settleTime.
func (f *feed) settled() bool {
	if f.informer.HasSynced() {
		return true
	}

	since, err := f.failure()

	return err != nil && time.Since(since) >= settleTime
}

func (c *liveCache) newSpace(name string) (*space, error) {
	s := &space{name: name, done: make(chan struct{}), feeds: map[kindKey]*feed{}}
	opts := c.opts

	// A requirement on metadata.namespace turns the cache's requests into those of one namespace. With DefaultNamespaces there
	// would be a layer more for each, with goroutines that outlive an informer that never synced.
	opts.DefaultFieldSelector = within(name, c.opts.DefaultFieldSelector)
	opts.DefaultNamespaces = nil
	opts.ReaderFailOnMissingInformer = true
	opts.NewInformer = func(
		lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return c.newFeed(s, lw, object, resync, indexers)
	}

	opts.ByObject = map[client.Object]cache.ByObject{}
	for object, by := range c.perSpace {
		field := by.Field
		if field == nil {
			field = c.opts.DefaultFieldSelector
		}

		by.Field = within(name, field)
		opts.ByObject[object] = by
	}

	var err error
	if s.cache, err = cache.New(c.cfg, opts); err != nil {
		return nil, fmt.Errorf("making a cache for namespace %s: %w", name, err)
	}

	return s, nil
}

func within(namespace string, selector fields.Selector) fields.Selector {
	switch {
	case namespace == "":
		return selector
	case selector == nil:
		return fields.OneTermEqualSelector("metadata.namespace", namespace)
	default:
		return fields.AndSelectors(fields.OneTermEqualSelector("metadata.namespace", namespace), selector)
	}
}

func (c *liveCache) newFeed(
	s *space, lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	f := &feed{}
	from := toolscache.ToListerWatcherWithContext(lw)
	heard := func(err error) {
		if f.note(err) {
			c.told(s, object, err)
		}
	}

	counted := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContext(ctx, o)
			heard(err)

			return list, err //nolint:wrapcheck // the reflector tells API errors apart
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := from.WatchWithContext(ctx, o)
			heard(err)

			return w, err //nolint:wrapcheck // the reflector tells API errors apart
		},
	}

	newInformer := c.opts.NewInformer
	if newInformer == nil {
		newInformer = toolscache.NewSharedIndexInformer
	}

	f.informer = newInformer(counted, object, resync, indexers)

	if id, err := keyOf(object, c.opts.Scheme); err == nil {
		s.mu.Lock()
		s.feeds[id] = f
		s.mu.Unlock()
	}

	return f.informer
}

func (s *space) feed(id kindKey) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.feeds[id]
}

func (s *space) forget(id kindKey) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.feeds, id)
}

func (s *space) each(visit func(kindKey, *feed)) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for id, f := range s.feeds {
		visit(id, f)
	}
}

func (s *space) settled() bool {
	settled := true

	s.each(func(_ kindKey, f *feed) { settled = settled && f.settled() })

	return settled
}

// start runs the cache until stop, or until the context ends.
func (s *space) start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)

	go func() {
		defer close(s.done)

		_ = s.cache.Start(ctx) // it has no error but that it was started twice
	}()
}

// stop ends the space, and returns when nothing of it runs any more.
func (s *space) stop() {
	s.work.close()
	s.reads.close()
	s.cancel()
	<-s.done
}

// wait returns when the kind can be read, with an error when it cannot be for now.
func (s *space) wait(ctx context.Context, id kindKey) error {
	f := s.feed(id)
	if f == nil || f.informer.HasSynced() {
		return nil // without an informer, the cache says what is wrong
	}

	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()

	var failed error

	decided := until(func() bool {
		_, failed = f.failure()

		return failed != nil || f.informer.HasSynced()
	}, ctx.Done(), s.done)

	switch {
	case f.informer.HasSynced():
		return nil
	case decided:
		return fmt.Errorf("namespace %s is in scope, but its %s cannot be watched: %w", s.name, id.gvk.Kind, failed)
	case isClosed(s.done):
		return notInScope(s.name)
	default:
		return fmt.Errorf("waiting for the %s of namespace %s: %w", id.gvk.Kind, s.name, ctx.Err())
	}
}
