package watchlist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// firstTime is for how long the start waits for the list. Without one nothing is served, and the rest of the operator runs.
	firstTime = 10 * time.Second
	// joinAgain is when a namespace is tried again for which no cache could be made.
	joinAgain = 5 * time.Second
)

// ErrRestart ends the manager when a list of names becomes "*", or the other way round: what was served under the one cannot be
// carried over to the other without a gap or a double, and a restart has neither.
var ErrRestart = errors.New("the list changed between names and all namespaces; the operator has to begin anew")

// listState is what the list says, and what became of it.
type listState struct {
	mu sync.Mutex
	// said is the list as it was last understood; known whether it ever was. err is why it could not be read since.
	said  namespaces
	known bool
	err   error
	// failed are namespaces for which no cache could be made.
	failed map[string]error
}

func (s *listState) hear(list namespaces, err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.err = err
	if err != nil {
		return false
	}

	changed = !s.known || s.said.String() != list.String()
	s.said, s.known = list, true

	return changed
}

func (s *listState) now() (namespaces, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.said, s.known
}

func (s *listState) fail(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if err == nil {
		delete(s.failed, name)
	} else {
		s.failed[name] = err
	}
}

// keep forgets what failed for namespaces that a list does not name.
func (s *listState) keep(list namespaces) {
	s.mu.Lock()
	defer s.mu.Unlock()

	maps.DeleteFunc(s.failed, func(name string, _ error) bool { return !list.has(name) })
}

// Start follows the list until the context ends.
func (c *liveCache) Start(ctx context.Context) error {
	if isClosed(c.started) {
		return errors.New("the cache was started twice")
	}

	ctx, cancel := context.WithCancel(ctx)
	defer close(c.end)
	defer cancel()

	close(c.started)
	c.handshake.begin()

	defer c.handshake.end()

	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	running.Go(func() { _ = c.fixed.Start(ctx) }) // it has no error but that it was started twice
	running.Go(func() { c.list.source.follow(ctx, c.hear) })
	running.Go(func() { c.handshake.run(ctx) })

	err := c.follow(ctx, &running)

	cancel()
	c.stopAll()

	return err
}

// hear takes in what the source says.
func (c *liveCache) hear(list namespaces, err error) {
	if c.state.hear(list, err) {
		c.again()
	}
}

func (c *liveCache) again() { wake(c.kick) }

// wake has whoever reads the channel look again, and waits for nobody.
func wake(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

func (c *liveCache) follow(ctx context.Context, running *sync.WaitGroup) error {
	begun := time.Now() // Before the timer: it goes off once.

	late := time.AfterFunc(firstTime, c.again)
	defer late.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.kick:
		}

		list, known := c.state.now()
		if !known {
			if time.Since(begun) >= firstTime && !c.begun() {
				close(c.first) // the rest of the operator runs; Ready reports that the list is missing
			}

			continue
		}

		if err := c.step(ctx, list, running); err != nil {
			return err
		}
	}
}

// step brings what is served one step closer to the list. What takes time is done in the background, and calls for another step.
func (c *liveCache) step(ctx context.Context, list namespaces, running *sync.WaitGroup) error {
	join, leave, busy, err := c.differences(ctx, list)
	if err != nil {
		return err
	}

	var opened sync.WaitGroup

	for _, s := range join {
		opened.Add(1)
		running.Go(func() {
			defer opened.Done()

			c.open(ctx, s)
		})
	}

	for _, s := range leave {
		running.Go(func() { c.leave(ctx, s) })
	}

	if !c.begun() {
		opened.Wait() // as a cache of fixed namespaces would
		close(c.first)
	}

	if !busy {
		c.handshake.takenIn(list)
	}

	servedGauge.Set(float64(len(list.names)))

	return nil
}

// differences starts the spaces that join and marks those that leave. busy says that a namespace that the list does not name, or
// did not name meanwhile, has not left completely.
func (c *liveCache) differences(ctx context.Context, list namespaces) (join, leave []*space, busy bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	wanted := list.spaces()
	c.state.keep(list)

	for name, s := range c.spaces {
		switch {
		case s.leaving:
			busy = true
		case (name == "") != list.all && len(wanted) > 0:
			return nil, nil, false, ErrRestart
		case !list.has(name):
			s.leaving, busy = true, true
			leave = append(leave, s)
		}
	}

	for _, name := range wanted {
		if _, served := c.spaces[name]; served {
			continue
		}

		s, err := c.join(ctx, name)
		c.state.fail(name, err)

		if err != nil {
			time.AfterFunc(joinAgain, c.again)

			continue
		}

		join = append(join, s)
	}

	return join, leave, busy, nil
}

// join starts a namespace. Its handlers are added later, so that a reconciler finds all kinds filled when the first event comes.
func (c *liveCache) join(ctx context.Context, name string) (*space, error) {
	s, err := c.newSpace(name)
	if err != nil {
		return nil, err
	}

	for _, k := range c.kinds {
		if err := k.join(ctx, s); err != nil {
			return nil, err
		}
	}

	c.spaces[name] = s
	s.start(ctx)

	return s, nil
}

// open lets events begin, once everything that can be read of the namespace has been.
func (c *liveCache) open(ctx context.Context, s *space) {
	opening, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()

	if !until(s.settled, opening.Done(), s.done) && (ctx.Err() != nil || isClosed(s.done)) {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if s.leaving {
		return
	}

	s.open = true

	for _, k := range c.kinds {
		for _, r := range k.registrations {
			if err := r.join(s); err != nil {
				log.FromContext(ctx).Error(err, "A namespace joined that could not be watched")
			}
		}
	}

	log.FromContext(ctx).Info("Serving a namespace", "namespace", s.name)
}

// leave ends a namespace: first its events end, then hooks run, then its reads end, and all that it held is gone.
func (c *liveCache) leave(ctx context.Context, s *space) {
	s.work.close()

	if s.name != "" {
		c.runHooks(ctx, s.name)
	}

	c.mu.Lock()
	delete(c.spaces, s.name)

	for _, k := range c.kinds {
		for _, r := range k.registrations {
			delete(r.parts, s)
		}
	}
	c.mu.Unlock()

	s.stop()
	failureCounter.DeletePartialMatch(prometheus.Labels{"namespace": s.name})
	log.FromContext(ctx).Info("No longer serving a namespace", "namespace", s.name)
	c.again()
}

func (c *liveCache) stopAll() {
	for _, s := range c.inOrder() {
		<-s.done
	}
}

// told counts a watch that began to fail, and warns of the first one of a namespace. A watch that works again needs neither.
func (c *liveCache) told(s *space, object runtime.Object, err error) {
	if err == nil {
		return
	}

	kindName := fmt.Sprintf("%T", object)
	if id, known := keyOf(object, c.opts.Scheme); known == nil {
		kindName = id.gvk.Kind
	}

	failureCounter.WithLabelValues(s.name, kindName).Inc()

	if s.warned.CompareAndSwap(false, true) {
		c.handshake.warn(s.String(), kindName, err)
	}
}

// problems are what Ready says, with sorted names and cut where there are many.
func (c *liveCache) problems() error {
	const most = 10

	var found []string

	c.state.mu.Lock()
	if c.state.err != nil {
		found = append(found, c.state.err.Error())
	} else if !c.state.known {
		found = append(found, "the list of namespaces has not been read yet")
	}

	for _, name := range slices.Sorted(maps.Keys(c.state.failed)) {
		found = append(found, fmt.Sprintf("namespace %s: %v", name, c.state.failed[name]))
	}
	c.state.mu.Unlock()

	for _, s := range c.inOrder() {
		if c.isLeaving(s) {
			continue // The list does not name it any more.
		}

		var kinds []string

		s.each(func(id kindKey, f *feed) {
			if _, err := f.failure(); err != nil {
				kinds = append(kinds, fmt.Sprintf("%s: %v", id.gvk.Kind, err))
			}
		})

		if len(kinds) > 0 {
			slices.Sort(kinds) // Several forms of one kind fail alike.
			found = append(found, fmt.Sprintf("%s: %s", s, strings.Join(slices.Compact(kinds), ", ")))
		}
	}

	if len(found) == 0 {
		return nil
	}

	if more := len(found) - most; more > 0 {
		found = append(found[:most], fmt.Sprintf("and %d more", more))
	}

	return errors.New(strings.Join(found, "; "))
}
