// Package changes turns changes in the cluster into requests to plan.
package changes

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// coalesce is how long the first of several changes waits for the others.
	coalesce = 10 * time.Millisecond
	// debounce is how long it waits in an operator namespace with continuous changes, such as one where somebody else keeps
	// writing what Ambit writes. It is short enough for drift to be undone within two seconds.
	debounce = time.Second
	// busyPlans in busyTime are allowed for an operator namespace before its plans are debounced.
	busyPlans = 50
	busyTime  = 10 * time.Second
)

// Changes turns what the store reports into requests to reconcile.
type Changes struct {
	mu sync.Mutex
	// queues are those of the controllers that have started.
	queues map[scope.Family]Queue

	interests map[scope.Key]interest
	// refused are the namespaces in which something was refused, or stood in the way, for a reconcile key.
	refused map[scope.Key]map[string]struct{}
	// defined are the keys to which it matters which kinds have namespaces, besides those of what is installed.
	defined map[scope.Key]struct{}
	// firstEvent is the time of the first change that no plan has processed yet.
	firstEvent map[scope.Key]time.Time
	// asked are the keys for which something has asked for a plan since the last one began.
	asked map[scope.Key]struct{}
	// rounds are when a namespace may have plans asked for next, after those that it may ask for at once.
	rounds map[string]time.Time
	// paces count the plans for a reconcile key.
	paces map[scope.Key]pace
	// early are the reconcile keys that changed before their family had a queue, of those that are expected to have one.
	early    map[scope.Key]struct{}
	expected map[scope.Family]struct{}
}

// interest is which namespaces matter to a reconcile key.
type interest struct {
	named     map[string]struct{}
	selectors []labels.Selector
}

// pace counts plans since a time.
type pace struct {
	since time.Time
	plans int
}

// New returns an empty Changes; Start gives it its queues.
func New() *Changes {
	return &Changes{
		queues:    map[scope.Family]Queue{},
		interests: map[scope.Key]interest{}, refused: map[scope.Key]map[string]struct{}{}, rounds: map[string]time.Time{},
		defined:    map[scope.Key]struct{}{},
		firstEvent: map[scope.Key]time.Time{}, asked: map[scope.Key]struct{}{}, paces: map[scope.Key]pace{},
		early:    map[scope.Key]struct{}{},
		expected: map[scope.Family]struct{}{},
	}
}

// Expect says that a family will have a queue. What changes for one that has none is forgotten: whoever can write an annotation
// can name any number of keys.
func (c *Changes) Expect(family scope.Family) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.expected[family] = struct{}{}
}

// Start hands over the queue of the controller of a family.
func (c *Changes) Start(family scope.Family, queue Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.queues[family] = queue

	for key := range c.early {
		if c.queues[key.Family] != nil {
			delete(c.early, key)
			c.add(key)
		}
	}
}

// KeyChanged asks for a plan for a reconcile key.
func (c *Changes) KeyChanged(key scope.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key)
}

// KeyUnblocked asks for a plan for a reconcile key for which there was one before, as if nothing had failed for it.
func (c *Changes) KeyUnblocked(key scope.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if _, planned := c.interests[key]; planned {
		c.afresh(key)
	}
}

// NamespaceChanged asks for a plan for each reconcile key that the namespace matters to, as it was or as it is.
func (c *Changes) NamespaceChanged(name string, before, after *facts.Namespace) {
	c.all(func(key scope.Key, in interest) bool {
		// Its own end matters to its scopes and to what is installed there.
		return key == scope.NamespaceScopes.In(name) || key == scope.Installs.In(name) || in.isAffected(name, before, after)
	})
}

// all asks for a plan for each reconcile key for which something holds.
func (c *Changes) all(is func(key scope.Key, in interest) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for key, in := range c.interests {
		if is(key, in) {
			c.afresh(key)
		}
	}
}

// EverythingChanged asks for a plan for every reconcile key.
func (c *Changes) EverythingChanged() { c.all(func(scope.Key, interest) bool { return true }) }

// Answered asks for a plan for every reconcile key for which something failed, because the API server, which had not answered,
// answers again.
func (c *Changes) Answered() {
	c.all(func(key scope.Key, _ interest) bool {
		queue := c.queues[key.Family]

		return queue != nil && queue.NumRequeues(key) > 0
	})
}

// afresh asks for a plan, after which failures count from one again. The change may be what an operator namespace was waiting
// for, and Ambit may hear of it before the API server's own authorizer and admission do: the retry after that must not be minutes
// away because of earlier failures.
func (c *Changes) afresh(key scope.Key) {
	if queue := c.queues[key.Family]; queue != nil {
		queue.Forget(key)
	}

	c.add(key)
}

func (c *Changes) add(key scope.Key) {
	queue, wait := c.note(key)
	if queue == nil {
		return
	}

	if _, planned := c.interests[key]; planned {
		queue.AddAfter(key, wait)
	} else {
		// Whoever can write an annotation can name any number of operator namespaces in which there is nothing.
		addPatiently(queue, key, wait)
	}
}

// note notes that a key has changed, and returns the queue that it is to be added to and how long it waits for further changes;
// no queue where there is none.
func (c *Changes) note(key scope.Key) (Queue, time.Duration) {
	if key.IsZero() {
		return nil, 0 // An object whose marks name no reconcile key is nobody's.
	}

	queue := c.queues[key.Family]
	if queue == nil {
		if _, comes := c.expected[key.Family]; comes {
			c.early[key] = struct{}{}
		}

		return nil, 0
	}

	c.asked[key] = struct{}{}

	if _, waiting := c.firstEvent[key]; !waiting {
		c.firstEvent[key] = time.Now()
	}

	if c.isBusy(key) {
		return queue, debounce
	}

	return queue, coalesce
}

// isBusy says whether there were so many plans for a key lately that the next waits.
func (c *Changes) isBusy(key scope.Key) bool {
	p := c.paces[key]

	return p.plans > busyPlans && time.Since(p.since) < busyTime
}

// Again asks for a plan at a time, whatever else asks for one before; zero asks for none.
func (c *Changes) Again(key scope.Key, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if queue := c.queues[key.Family]; queue != nil && !at.IsZero() {
		queue.AddAfter(key, max(time.Millisecond, time.Until(at)))
	}
}

// ask notes that something asks for plans by itself, and returns those that it is to ask for at once. The others are asked for
// here, and wait: whoever writes a resource without an end keeps nobody else from being served.
func (c *Changes) ask(keys ...scope.Key) []scope.Key {
	c.mu.Lock()
	defer c.mu.Unlock()

	return slices.DeleteFunc(keys, func(key scope.Key) bool {
		c.asked[key] = struct{}{}

		queue := c.queues[key.Family]
		waits := queue != nil && c.isBusy(key)

		if waits {
			queue.AddAfter(key, debounce)
		}

		return waits
	})
}

// Asked says whether something has asked for a plan since the last one began, which may not have taken that in.
func (c *Changes) Asked(key scope.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	_, asked := c.asked[key]

	return asked
}

// Return has a key come once more, although nothing has changed.
func (c *Changes) Return(key scope.Key) { c.Again(key, time.Now()) }

// Dequeue returns the time of the first change that no plan before the coming one has processed, and counts that plan.
func (c *Changes) Dequeue(key scope.Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	t := c.firstEvent[key]
	delete(c.firstEvent, key)
	delete(c.asked, key)

	p := c.paces[key]
	if time.Since(p.since) >= busyTime {
		p = pace{since: time.Now()}
	}

	p.plans++
	c.paces[key] = p

	if _, known := c.interests[key]; !known {
		// From now on everything that concerns all keys concerns this one.
		c.interests[key] = interest{}
	}

	return t
}

// Follow notes which namespaces matter to a reconcile key.
func (c *Changes) Follow(key scope.Key, scopes []scope.Scope) {
	in := interest{named: map[string]struct{}{}}

	for i := range scopes {
		members := &scopes[i].Members
		for _, name := range members.Named {
			in.named[name] = struct{}{}
		}

		if members.Selector != nil {
			in.selectors = append(in.selectors, members.Selector)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.interests[key] = in
}

// Refuse notes where something was refused for a reconcile key.
func (c *Changes) Refuse(key scope.Key, namespaces map[string]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(namespaces) == 0 {
		delete(c.refused, key)
	} else {
		c.refused[key] = namespaces
	}
}

// Define notes whether it matters to a reconcile key which kinds have namespaces.
func (c *Changes) Define(key scope.Key, matters bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if matters {
		c.defined[key] = struct{}{}
	} else {
		delete(c.defined, key)
	}
}

// Forget drops what is known of a reconcile key for which there is nothing any more.
func (c *Changes) Forget(key scope.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.interests, key)
	delete(c.refused, key)
	delete(c.defined, key)
	delete(c.paces, key)
	delete(c.firstEvent, key)
}

func (in *interest) selects(ns *facts.Namespace) bool {
	return ns != nil && slices.ContainsFunc(in.selectors, func(s labels.Selector) bool { return ns.IsSelected(s) })
}

// isAffected says whether a change of a namespace matters. Its labels do where they decide whether it is selected: whoever may
// write them could otherwise have everybody planned for again who names the namespace, all the time.
func (in *interest) isAffected(name string, before, after *facts.Namespace) bool {
	if before != nil && after != nil && before.Terminating == after.Terminating && before.Deleted.Equal(after.Deleted) &&
		before.Closed == after.Closed {
		return slices.ContainsFunc(in.selectors, func(s labels.Selector) bool {
			return before.IsSelected(s) != after.IsSelected(s)
		})
	}

	_, named := in.named[name]

	return named || in.selects(before) || in.selects(after)
}
