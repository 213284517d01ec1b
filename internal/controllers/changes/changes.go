// Package changes turns changes in the cluster into requests to plan.
package changes

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// Changes turns what the store reports into requests to reconcile operator namespaces.
type Changes struct {
	mu sync.Mutex
	// queues are those of the controllers that have started.
	queues map[scope.Family]workqueue.TypedRateLimitingInterface[reconcile.Request]

	interests map[string]interest
	// refused are the namespaces in which something was refused, or stood in the way, for a reconcile key.
	refused map[string]map[string]struct{}
	// firstEvent is the time of the first change that no plan has processed yet.
	firstEvent map[string]time.Time
	// paces count the plans of an operator namespace.
	paces map[string]pace
	// early are operator namespaces that changed before there was a queue.
	early map[string]struct{}
}

// interest is which namespaces matter to an operator namespace.
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
		queues:    map[scope.Family]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
		interests: map[string]interest{}, refused: map[string]map[string]struct{}{},
		firstEvent: map[string]time.Time{}, paces: map[string]pace{}, early: map[string]struct{}{},
	}
}

// Start hands over the queue of the controller of a family.
func (c *Changes) Start(family scope.Family, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.queues[family] = queue

	for key := range c.early {
		if c.queueOf(key) != nil {
			delete(c.early, key)
			c.add(key)
		}
	}
}

func (c *Changes) queueOf(key string) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	family, _ := scope.FamilyOf(key)

	return c.queues[family]
}

// KeyChanged asks for a plan for a reconcile key.
func (c *Changes) KeyChanged(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key)
}

// NamespaceChanged asks for a plan for each operator namespace that the namespace matters to, as it was or as it is.
func (c *Changes) NamespaceChanged(name string, before, after *facts.Namespace) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for key, in := range c.interests {
		_, named := in.named[name]
		if named || key == name || key == scope.InstallKey(name) || in.selects(before) || in.selects(after) {
			c.afresh(key)
		}
	}
}

// PermissionsChanged asks for a plan for each operator namespace for which something was refused in the namespace; in any
// namespace, when it is empty.
func (c *Changes) PermissionsChanged(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for key, namespaces := range c.refused {
		if _, refused := namespaces[namespace]; refused || namespace == "" {
			c.afresh(key)
		}
	}
}

// EverythingChanged asks for a plan for every operator namespace.
func (c *Changes) EverythingChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()

	for key := range c.interests {
		c.afresh(key)
	}
}

// afresh asks for a plan, after which failures count from one again. The change may be what an operator namespace was waiting
// for, and Ambit may hear of it before the API server's own authorizer and admission do: the retry after that must not be
// minutes away, for the failures that there were before.
func (c *Changes) afresh(key string) {
	if queue := c.queueOf(key); queue != nil {
		queue.Forget(request(key))
	}

	c.add(key)
}

func (c *Changes) add(key string) {
	if key == "" {
		return // Marks that point nowhere are nobody's.
	}

	queue := c.queueOf(key)
	if queue == nil {
		c.early[key] = struct{}{}

		return
	}

	if _, waiting := c.firstEvent[key]; !waiting {
		c.firstEvent[key] = time.Now()
	}

	wait := coalesce
	if p := c.paces[key]; p.plans > busyPlans && time.Since(p.since) < busyTime {
		wait = debounce
	}

	// Whoever can write an annotation can name any number of operator namespaces in which there is nothing.
	if _, planned := c.interests[key]; !planned {
		if patient, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			patient.AddWithOpts(priorityqueue.AddOpts{After: wait, Priority: new(handler.LowPriority)}, request(key))

			return
		}
	}

	queue.AddAfter(request(key), wait)
}

// Again asks for a plan at a time, whatever else asks for one before; zero asks for none.
func (c *Changes) Again(key string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if queue := c.queueOf(key); queue != nil && !at.IsZero() {
		queue.AddAfter(request(key), max(time.Millisecond, time.Until(at)))
	}
}

func request(key string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: key}}
}

// Dequeue returns the time of the first change that the coming plan is the first to process.
func (c *Changes) Dequeue(key string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	t := c.firstEvent[key]
	delete(c.firstEvent, key)

	p := c.paces[key]
	if time.Since(p.since) >= busyTime {
		p = pace{since: time.Now()}
	}

	p.plans++
	c.paces[key] = p

	if _, known := c.interests[key]; !known {
		// From now on everything that concerns all operator namespaces concerns this one.
		c.interests[key] = interest{}
	}

	return t
}

// Follow notes which namespaces matter to an operator namespace.
func (c *Changes) Follow(key string, scopes []scope.Scope) {
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
func (c *Changes) Refuse(key string, namespaces map[string]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(namespaces) == 0 {
		delete(c.refused, key)
	} else {
		c.refused[key] = namespaces
	}
}

// Forget drops what is known of an operator namespace that has no scope any more.
func (c *Changes) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.interests, key)
	delete(c.refused, key)
	delete(c.paces, key)
}

func (in *interest) selects(ns *facts.Namespace) bool {
	if ns == nil {
		return false
	}

	for _, s := range in.selectors {
		if s.Matches(labels.Set(ns.Labels)) {
			return true
		}
	}

	return false
}
