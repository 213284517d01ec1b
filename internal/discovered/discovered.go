// Package discovered says what the API server serves, and remembers it for a while.
package discovered

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ByMapper returns what says whether a resource is known to have no namespace, for those who end soon. It asks the mapper once
// for each resource: a mapper asks the API server each time for one that it does not know.
func ByMapper(mapper meta.RESTMapper) func(group, resource string) bool {
	var known sync.Map

	return func(group, resource string) bool {
		key := schema.GroupResource{Group: group, Resource: resource}

		is, remembered := known.Load(key)
		if !remembered {
			is, _ = IsClusterScoped(mapper, key)
			known.Store(key, is)
		}

		return is == true
	}
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
