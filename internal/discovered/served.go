package discovered

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

const (
	// askAgain is after how long what is known is asked for again: its kind may have been installed differently.
	askAgain = 5 * time.Minute
	// askAgainMissing is after how long a definition that was missing is looked for again where no definition may be watched, and
	// askAgainUnknown a resource that rules name: everybody can write rules.
	askAgainMissing = 5 * time.Second
	askAgainUnknown = time.Minute
)

// Served says what is served, also where definitions may not be read. It is safe for concurrent use, and asks for all kinds in
// one go, which the API server answers from memory: a question about one API group is for whoever serves that, and a mapper of
// controller-runtime holds up everybody else until that has answered. Nor does such a mapper learn of what is gone.
type Served struct {
	ask func() ([]*metav1.APIResourceList, error)
	now func() time.Time

	mu sync.Mutex
	// known says of each kind whether it has namespaces.
	known map[schema.GroupVersion]map[servedKind]bool
	// asked is when the question began to which known is the answer.
	asked time.Time
	// defined is set where definitions are watched.
	defined Defined
}

type servedKind struct{ plural, kind string }

// Defined says of the kind of an established definition whether it has namespaces; known is false where there is none.
type Defined func(name string) (namespaced, known bool)

// IsEstablished says whether the API server serves the kind of a definition, under names that no other one has, and goes on to.
func IsEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp == nil &&
		slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
}

// NewServed returns a Served that asks a client for discovery.
func NewServed(c discovery.ServerResourcesInterface) *Served {
	return &Served{now: time.Now, ask: func() ([]*metav1.APIResourceList, error) {
		_, lists, err := c.ServerGroupsAndResources()

		return lists, err //nolint:wrapcheck // Whoever asks says what for.
	}}
}

// Has says whether a kind is served in a version, by the name of its definition.
func (s *Served) Has(definition, version, kind string) (bool, error) {
	plural, group, _ := strings.Cut(definition, ".")
	gv, is := schema.GroupVersion{Group: group, Version: version}, servedKind{plural, kind}

	found, err := s.find(s.now().Add(-askAgainMissing), func() bool {
		_, found := s.known[gv][is]

		return found
	})
	if err != nil {
		return false, fmt.Errorf("asking whether %s is served: %w", definition, err)
	}

	return found, nil
}

// Serves says whether a kind is served in a version; in any where that is empty. What is found missing was so at a time or later.
func (s *Served) Serves(at time.Time, group, version, kind string) bool {
	is, _ := s.find(at, func() bool { // What cannot be asked now is as it was.
		for gv, kinds := range s.known {
			if gv.Group != group || version != "" && gv.Version != version {
				continue
			}

			for k := range kinds {
				if k.kind == kind {
					return true
				}
			}
		}

		return false
	})

	return is
}

// Ask has definitions asked first: the API server's discovery learns of a kind a moment later than its definition says so.
func (s *Served) Ask(defined Defined) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.defined = defined
}

// IsClusterScoped says whether a resource is known to have no namespace. One that is not served is taken to have one.
func (s *Served) IsClusterScoped(group, resource string) bool {
	is := false
	_, _ = s.find(s.now().Add(-askAgainUnknown), func() bool { // As above.
		if s.defined != nil {
			if namespaced, known := s.defined(resource + "." + group); known {
				is = !namespaced

				return true
			}
		}

		for gv, kinds := range s.known {
			if gv.Group != group {
				continue
			}

			for k, namespaced := range kinds {
				if k.plural == resource {
					is = !namespaced

					return true
				}
			}
		}

		is = false

		return false
	})

	return is
}

// find says whether something is served. What was not when the API server was asked last, before a time, is asked for again.
func (s *Served) find(since time.Time, is func() bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	found := is()
	if found {
		since = s.now().Add(-askAgain)
	}

	if s.known != nil && s.asked.After(since) {
		return found, nil
	}

	if err := s.renew(); err != nil {
		return found, err
	}

	return is(), nil
}

// renew is called with mu held. For a group version whose discovery fails now, what was known of it is kept.
func (s *Served) renew() error {
	began := s.now()
	lists, err := s.ask()

	failed := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &failed) {
		return err
	}

	known := map[schema.GroupVersion]map[servedKind]bool{}

	for gv := range failed.Groups {
		known[gv] = s.known[gv]
	}

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		known[gv] = make(map[servedKind]bool, len(list.APIResources))

		for i := range list.APIResources {
			if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") { // Subresources are kinds of others.
				known[gv][servedKind{r.Name, r.Kind}] = r.Namespaced
			}
		}
	}

	s.known, s.asked = known, began

	return nil
}
