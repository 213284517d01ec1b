package template

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// askAgain is after what time a resource is looked up anew that the API server did not know, or knew: its kind may have been
// installed meanwhile, or installed differently.
const askAgain = 5 * time.Minute

// clusterScoped remembers which resources have no namespace.
type clusterScoped struct {
	mu    sync.Mutex
	known map[string]answer
}

type answer struct {
	clusterScoped bool
	at            time.Time
}

// among returns the resources, of those that the scopes' rules name, that have no namespace. What the API server does not
// know is taken to have one.
func (c *clusterScoped) among(mapper meta.RESTMapper, scopes []scope.Scope) map[string]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.known == nil {
		c.known = map[string]answer{}
	}

	out := map[string]struct{}{}

	for i := range scopes {
		for _, b := range scopes[i].Binds {
			for j := range b.Rules {
				for _, what := range plan.ResourcesOf(&b.Rules[j]) {
					if c.isClusterScoped(mapper, what) {
						out[what] = struct{}{}
					}
				}
			}
		}
	}

	return out
}

func (c *clusterScoped) isClusterScoped(mapper meta.RESTMapper, what string) bool {
	if a, known := c.known[what]; known && time.Since(a.at) < askAgain {
		return a.clusterScoped
	}

	resource, group, _ := strings.Cut(what, ".")
	a := answer{at: time.Now()}

	if kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource}); err == nil {
		if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			a.clusterScoped = mapping.Scope.Name() == meta.RESTScopeNameRoot
		}
	}

	c.known[what] = a

	return a.clusterScoped
}
