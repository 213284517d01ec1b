package changes

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// Where permissions change all the time in a namespace, all keys for which something was refused there are planned again
	// busyPlans times at once, and after that once in as many times retryEach as there are keys, or in maxRound. For no more than
	// fewRetries keys, what holds for each of them suffices.
	fewRetries = 10
	retryEach  = 50 * time.Millisecond
	maxRound   = 30 * time.Second
)

// PermissionsChanged asks for a plan for each reconcile key for which something was refused in the namespace. These may be
// thousands, and whoever may write there decides how often. Nobody loses anything while they wait, so all others come first.
func (c *Changes) PermissionsChanged(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retry(namespace, busyPlans, func(_ scope.Key, refused map[string]struct{}) bool {
		_, is := refused[namespace]

		return is
	})
}

// ClusterPermissionsChanged asks for a plan for each reconcile key for which something was refused, in any namespace, that may be
// allowed now. Whoever writes for a namespace is an account of it, or Ambit itself.
func (c *Changes) ClusterPermissionsChanged(of facts.ClusterPermissions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retry(corev1.NamespaceAll, fewPlans, func(key scope.Key, refused map[string]struct{}) bool {
		_, writes := of.Namespaces[key.Namespace]
		_, clusterWide := refused[corev1.NamespaceAll]
		// What an InstallPlan writes may bind a ClusterRole of somebody else's.
		inNamespaces := !clusterWide || len(refused) > 1 || key.Family == scope.Catalogs

		return of.Everybody || writes || of.Bound && inNamespaces || of.Freed && clusterWide
	})
}

// retry asks for a plan for each reconcile key for which something was refused that may be allowed now, by what changed in a
// place.
func (c *Changes) retry(place string, atOnce int, is func(key scope.Key, refused map[string]struct{}) bool) {
	var keys []scope.Key

	for key, refused := range c.refused {
		if is(key, refused) {
			keys = append(keys, key)
		}
	}

	wait := c.round(place, len(keys), atOnce)

	for _, key := range keys {
		if queue := c.queues[key.Family]; queue != nil && wait == 0 {
			queue.Forget(key)
		}
	}

	c.patiently(keys, wait)
}

const (
	// definitions stands for all CustomResourceDefinitions among namespaces, cluster for what holds in all of them, and rivals after
	// the name of one for its operators. No namespace has such a name.
	definitions, cluster, rivals = "/", "/cluster", "/rivals"
	// fewPlans are those that are asked for at once because of one of them: a definition changes a few times while it comes.
	fewPlans = 3
)

// DefinitionsChanged asks for plans for keys to which a CustomResourceDefinition may matter, and for those that Define noted.
// These may be thousands, and whoever may write one decides how often.
func (c *Changes) DefinitionsChanged(keys []scope.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()

	keys = slices.AppendSeq(keys, maps.Keys(c.defined))
	c.patiently(keys, c.round(definitions, len(keys), fewPlans))
}

// ClusterChanged asks for plans for keys, or for all, because of what holds in the whole cluster. Whoever may write bindings
// decides for how many.
func (c *Changes) ClusterChanged(keys []scope.Key, everybody bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if everybody {
		keys = slices.Collect(maps.Keys(c.interests))
	}

	c.patiently(keys, c.round(cluster, len(keys), fewPlans))
}

// RivalsChanged asks for plans for keys whose operators may work where one of a namespace does, or did. Whoever writes its group
// decides how often.
func (c *Changes) RivalsChanged(namespace string, keys []scope.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patiently(keys, c.round(namespace+rivals, len(keys), fewPlans))
}

// patiently asks for plans for keys after a time, and after everything else.
func (c *Changes) patiently(keys []scope.Key, wait time.Duration) {
	for _, key := range keys {
		queue, pause := c.note(key)
		if queue == nil {
			continue
		}

		addPatiently(queue, key, max(wait, pause))
	}
}

// Wrote asks for a plan, after a time, for each reconcile key for which something was refused in one of some namespaces, because
// Ambit itself wrote permissions there: a copy of one scope may be what the account of another one lacked.
func (c *Changes) Wrote(namespaces map[string]struct{}, after time.Duration) {
	if len(namespaces) == 0 {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	in := map[string][]scope.Key{}

	for key, refused := range c.refused {
		if namespace, is := common(namespaces, refused); is && c.queues[key.Family] != nil {
			in[namespace] = append(in[namespace], key)
		}
	}

	for namespace, keys := range in {
		wait := max(after, c.round(namespace, len(keys), busyPlans))

		for _, key := range keys {
			c.asked[key] = struct{}{}

			addPatiently(c.queues[key.Family], key, wait)
		}
	}
}

// common is a namespace that is in both sets. It looks through the smaller one: there may be many keys, or many namespaces.
func common(a, b map[string]struct{}) (namespace string, is bool) {
	if len(a) > len(b) {
		a, b = b, a
	}

	for name := range a {
		if _, both := b[name]; both {
			return name, true
		}
	}

	return "", false
}

// round is how long so many keys wait because of what changed in a place: a namespace, or what stands among these for something
// else. Those that wait already wait no longer, and the first so many plans do not wait.
func (c *Changes) round(place string, keys, atOnce int) time.Duration {
	if keys <= fewRetries {
		return 0
	}

	now, every := time.Now(), min(time.Duration(keys)*retryEach, maxRound)

	at := c.rounds[place]
	if !at.After(now) {
		if quiet := now.Add(-time.Duration(atOnce) * every); at.Before(quiet) {
			at = quiet
		}

		at = at.Add(every)
		c.rounds[place] = at
	}

	// One that has been quiet for so long may ask at once again, and needs no record.
	maps.DeleteFunc(c.rounds, func(_ string, at time.Time) bool { return at.Before(now.Add(-busyPlans * maxRound)) })

	return max(0, at.Sub(now))
}

// addPatiently has a key come after all that are not asked for in this way.
func addPatiently(queue Queue, key scope.Key, wait time.Duration) {
	if patient, ok := queue.(priorityqueue.PriorityQueue[scope.Key]); ok {
		patient.AddWithOpts(priorityqueue.AddOpts{After: wait, Priority: new(handler.LowPriority)}, key)
	} else {
		queue.AddAfter(key, wait)
	}
}
