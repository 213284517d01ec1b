// Package changes turns what is heard of the cluster into requests to plan.
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
	// calm is how long it waits in a home that does not come to rest, such as one where somebody else keeps writing what
	// Ambit writes. It is short enough for drift to be undone within two seconds.
	calm = time.Second
	// busyPlans in busyTime is what a home may do before it has to be calm.
	busyPlans = 50
	busyTime  = 10 * time.Second
)

// Changes turns what the store hears into requests to reconcile homes.
type Changes struct {
	mu sync.Mutex
	// queue is that of the namespaces, cluster that of the scopes that have none, installs that of what is installed, and
	// catalogs that of what is subscribed to.
	queue, cluster, installs, catalogs workqueue.TypedRateLimitingInterface[reconcile.Request]

	homes map[string]interest
	// refused are the namespaces in which something was refused, or stood in the way, for a home.
	refused map[string]map[string]struct{}
	// learned is when the first change was heard that no plan has looked at yet.
	learned map[string]time.Time
	// paces count the plans of a home.
	paces map[string]pace
	// early are homes that changed before there was a queue.
	early map[string]struct{}
}

// interest is which namespaces matter to a home.
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
		homes: map[string]interest{}, refused: map[string]map[string]struct{}{},
		learned: map[string]time.Time{}, paces: map[string]pace{}, early: map[string]struct{}{},
	}
}

// Start hands over the queue of the controller of namespaces.
func (c *Changes) Start(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.queue = queue
	c.catchUp()
}

// StartCluster hands over the queue of the controller of scopes that have no namespace.
func (c *Changes) StartCluster(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.cluster = queue
	c.catchUp()
}

// StartInstalls hands over the queue of the controller of what is installed.
func (c *Changes) StartInstalls(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.installs = queue
	c.catchUp()
}

// StartCatalogs hands over the queue of the controller of what is subscribed to.
func (c *Changes) StartCatalogs(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.catalogs = queue
	c.catchUp()
}

func (c *Changes) catchUp() {
	for home := range c.early {
		if c.queueOf(home) != nil {
			delete(c.early, home)
			c.add(home)
		}
	}
}

func (c *Changes) queueOf(home string) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	if home == scope.Cluster {
		return c.cluster
	}

	if _, install := scope.InstallNamespace(home); install {
		return c.installs
	}

	if _, subscribed := scope.CatalogNamespace(home); subscribed {
		return c.catalogs
	}

	return c.queue
}

// HomeChanged asks for a plan for a home.
func (c *Changes) HomeChanged(home string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(home)
}

// NamespaceChanged asks for a plan for each home that the namespace matters to, as it was or as it is.
func (c *Changes) NamespaceChanged(name string, before, after *facts.Namespace) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for home, in := range c.homes {
		_, named := in.named[name]
		if named || home == name || home == scope.InstallHome(name) || in.selects(before) || in.selects(after) {
			c.afresh(home)
		}
	}
}

// PermissionsChanged asks for a plan for each home for which something was refused in the namespace; in any namespace, when
// it is empty.
func (c *Changes) PermissionsChanged(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for home, namespaces := range c.refused {
		if _, refused := namespaces[namespace]; refused || namespace == "" {
			c.afresh(home)
		}
	}
}

// EverythingChanged asks for a plan for every home.
func (c *Changes) EverythingChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()

	for home := range c.homes {
		c.afresh(home)
	}
}

// afresh asks for a plan, after which failures count from one again. The change may be what a home was waiting for, and Ambit
// may hear of it before the API server's own authorizer and admission do: the retry after that must not be minutes away, for
// the failures that there were before.
func (c *Changes) afresh(home string) {
	if queue := c.queueOf(home); queue != nil {
		queue.Forget(request(home))
	}

	c.add(home)
}

func (c *Changes) add(home string) {
	if home == "" {
		return // Marks that point nowhere are nobody's.
	}

	queue := c.queueOf(home)
	if queue == nil {
		c.early[home] = struct{}{}

		return
	}

	if _, waiting := c.learned[home]; !waiting {
		c.learned[home] = time.Now()
	}

	wait := coalesce
	if p := c.paces[home]; p.plans > busyPlans && time.Since(p.since) < busyTime {
		wait = calm
	}

	// Whoever can write an annotation can name any number of homes in which there is nothing.
	if _, planned := c.homes[home]; !planned {
		if patient, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			patient.AddWithOpts(priorityqueue.AddOpts{After: wait, Priority: new(handler.LowPriority)}, request(home))

			return
		}
	}

	queue.AddAfter(request(home), wait)
}

// Again asks for a plan at a time, whatever else asks for one before; zero asks for none.
func (c *Changes) Again(home string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if queue := c.queueOf(home); queue != nil && !at.IsZero() {
		queue.AddAfter(request(home), max(time.Millisecond, time.Until(at)))
	}
}

func request(home string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: home}}
}

// Take returns when the first change was heard that the coming plan is the first to look at.
func (c *Changes) Take(home string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	t := c.learned[home]
	delete(c.learned, home)

	p := c.paces[home]
	if time.Since(p.since) >= busyTime {
		p = pace{since: time.Now()}
	}

	p.plans++
	c.paces[home] = p

	if _, known := c.homes[home]; !known {
		// From now on everything that concerns all homes concerns this one.
		c.homes[home] = interest{}
	}

	return t
}

// Follow notes which namespaces matter to a home.
func (c *Changes) Follow(home string, scopes []scope.Scope) {
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
	c.homes[home] = in
}

// Refuse notes where something was refused for a home.
func (c *Changes) Refuse(home string, namespaces map[string]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(namespaces) == 0 {
		delete(c.refused, home)
	} else {
		c.refused[home] = namespaces
	}
}

// Forget drops what is known of a home that has no scope any more.
func (c *Changes) Forget(home string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.homes, home)
	delete(c.refused, home)
	delete(c.paces, home)
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
