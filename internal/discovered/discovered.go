// Package discovered says what the API server serves, and remembers it for a while.
package discovered

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// After askAgain a resource is looked up again: its kind may have been installed differently. One that the API server did not
// know is looked up sooner, since operators often come with their kinds.
const (
	askAgain        = 5 * time.Minute
	askAgainUnknown = time.Minute
	// maxKnown bounds what is remembered: rules name resources, and everybody can write rules.
	maxKnown = 4096
)

// Resources says which resources have no namespace. It is safe for concurrent use.
type Resources struct {
	find func(schema.GroupResource) (isClusterScoped, known bool)
	now  func() time.Time

	mu    sync.Mutex
	known map[schema.GroupResource]answer
}

type answer struct {
	clusterScoped bool
	until         time.Time
}

// New returns Resources that ask a mapper.
func New(mapper meta.RESTMapper) *Resources {
	return newResources(func(r schema.GroupResource) (is, known bool) { return IsClusterScoped(mapper, r) })
}

// Resources are those that are served.
func (s *Served) Resources() *Resources { return newResources(s.IsClusterScoped) }

func newResources(find func(schema.GroupResource) (isClusterScoped, known bool)) *Resources {
	return &Resources{find: find, now: time.Now, known: map[schema.GroupResource]answer{}}
}

// IsClusterScoped says whether a resource is known to have no namespace. One that the API server does not know is taken to have
// one.
func (r *Resources) IsClusterScoped(group, resource string) bool {
	key := schema.GroupResource{Group: group, Resource: resource}

	r.mu.Lock()
	a, known := r.known[key]
	r.mu.Unlock()

	now := r.now()
	if known && now.Before(a.until) {
		return a.clusterScoped
	}

	a = r.ask(key, now)

	r.mu.Lock()
	defer r.mu.Unlock()

	if len(r.known) >= maxKnown {
		clear(r.known)
	}

	r.known[key] = a

	return a.clusterScoped
}

func (r *Resources) ask(key schema.GroupResource, now time.Time) answer {
	is, known := r.find(key)
	if !known {
		return answer{until: now.Add(askAgainUnknown)}
	}

	return answer{is, now.Add(askAgain)}
}

// IsClusterScoped says whether a resource has no namespace, if the mapper knows it. A mapper also returns kinds of groups that
// only begin as that of the resource, and for the core group those of all groups, in an order that differs between two runs.
func IsClusterScoped(mapper meta.RESTMapper, resource schema.GroupResource) (is, known bool) {
	kinds, err := mapper.KindsFor(resource.WithVersion(""))
	if err != nil {
		return false, false
	}

	at := slices.IndexFunc(kinds, func(kind schema.GroupVersionKind) bool { return kind.Group == resource.Group })
	if at < 0 {
		return false, false
	}

	mapping, err := mapper.RESTMapping(kinds[at].GroupKind(), kinds[at].Version)
	if err != nil {
		return false, false
	}

	return mapping.Scope.Name() == meta.RESTScopeNameRoot, true
}
