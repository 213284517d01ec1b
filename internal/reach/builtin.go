package reach

import (
	"strings"
	"sync"
)

// BuiltInClusterScoped are Kubernetes' own resources that are in no namespace, as "resource" or "resource.group". They are shared
// and must not be changed.
func BuiltInClusterScoped() map[string]struct{} { return builtInClusterScoped() }

//nolint:gochecknoglobals // It never changes.
var builtInClusterScoped = sync.OnceValue(func() map[string]struct{} {
	out := map[string]struct{}{}

	for r, reach := range builtIn().known {
		if reach == ClusterScoped && !strings.Contains(r.Name, "/") {
			out[strings.TrimSuffix(r.Name+"."+r.Group, ".")] = struct{}{}
		}
	}

	return out
})
