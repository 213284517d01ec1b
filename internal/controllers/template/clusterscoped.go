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

// After askAgain a resource is looked up anew: its kind may have been installed differently. One that the API server did not
// know is looked up sooner, since operators often come with their kinds.
const (
	askAgain        = 5 * time.Minute
	askAgainUnknown = time.Minute
)

// clusterScoped remembers which resources have no namespace.
type clusterScoped struct {
	mu    sync.Mutex
	known map[string]answer
}

type answer struct {
	clusterScoped bool
	until         time.Time
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
	if a, known := c.known[what]; known && time.Now().Before(a.until) {
		return a.clusterScoped
	}

	resource, group, _ := strings.Cut(what, ".")
	a := answer{until: time.Now().Add(askAgainUnknown)}

	if kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource}); err == nil {
		if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			a = answer{mapping.Scope.Name() == meta.RESTScopeNameRoot, time.Now().Add(askAgain)}
		}
	}

	c.known[what] = a

	return a.clusterScoped
}
