package discovered

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// askAgainMissing is after how long a definition that was missing is looked for again where no definition may be watched.
const askAgainMissing = 5 * time.Second

// Served says whether custom resources are served, where their definitions may not be read. It is safe for concurrent use, and
// asks for all kinds in one go.
type Served struct {
	ask func() ([]*metav1.APIResourceList, error)
	now func() time.Time

	mu    sync.Mutex
	known map[schema.GroupVersion]map[servedKind]struct{}
	asked time.Time
}

type servedKind struct{ plural, kind string }

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

	s.mu.Lock()
	defer s.mu.Unlock()

	_, found := s.known[gv][is]
	if age := s.now().Sub(s.asked); s.known != nil && (found && age < askAgain || !found && age < askAgainMissing) {
		return found, nil
	}

	if err := s.renew(); err != nil {
		return false, fmt.Errorf("asking whether %s is served: %w", definition, err)
	}

	_, found = s.known[gv][is]

	return found, nil
}

// renew is called with mu held. For a group version whose discovery fails now, what was known of it is kept.
func (s *Served) renew() error {
	lists, err := s.ask()

	failed := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &failed) {
		return err
	}

	known := map[schema.GroupVersion]map[servedKind]struct{}{}

	for gv := range failed.Groups {
		known[gv] = s.known[gv]
	}

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		known[gv] = make(map[servedKind]struct{}, len(list.APIResources))

		for i := range list.APIResources {
			known[gv][servedKind{list.APIResources[i].Name, list.APIResources[i].Kind}] = struct{}{}
		}
	}

	s.known, s.asked = known, s.now()

	return nil
}
