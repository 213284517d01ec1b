// Package discovered says what the API server serves, and remembers it for a while.
package discovered

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
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
	find  func(schema.GroupResource) (isClusterScoped, known bool)
	known *cache.LRUExpireCache
}

// New returns Resources that ask a mapper.
func New(mapper meta.RESTMapper) *Resources {
	return newResources(func(r schema.GroupResource) (is, known bool) { return IsClusterScoped(mapper, r) })
}

// Resources are those that are served.
func (s *Served) Resources() *Resources { return newResources(s.IsClusterScoped) }

func newResources(find func(schema.GroupResource) (isClusterScoped, known bool)) *Resources {
	return &Resources{find: find, known: cache.NewLRUExpireCache(maxKnown)}
}

// IsClusterScoped says whether a resource is known to have no namespace. One that the API server does not know is taken to have
// one.
func (r *Resources) IsClusterScoped(group, resource string) bool {
	key := schema.GroupResource{Group: group, Resource: resource}
	if was, remembered := r.known.Get(key); remembered {
		is, _ := was.(bool) // Nothing else is in it.

		return is
	}

	is, known := r.find(key)
	if known {
		r.known.Add(key, is, askAgain)
	} else {
		r.known.Add(key, false, askAgainUnknown)
	}

	return known && is
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
