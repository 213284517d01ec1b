package simulation

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Confine has OLM's kinds served as where Ambit has rights in single namespaces alone. Which kinds there are is what the cluster
// in memory knows.
func (s *Simulation) Confine(to group.Confined) {
	to.Served = served{s.cluster.mapper}
	s.Confined = &to
}

// served says which kinds there are.
type served struct{ meta.RESTMapper }

// Has says whether a kind is served in a version, by the name of its definition.
func (s served) Has(definition, version, kind string) (bool, error) {
	plural, of, _ := strings.Cut(definition, ".")

	mapping, err := s.RESTMapping(schema.GroupKind{Group: of, Kind: kind}, version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}

	return err == nil && mapping.Resource.Resource == plural, err //nolint:wrapcheck // Whoever asks says what for.
}

// Inaccessible takes out of facts what is in members of scopes that a manager with rights in single namespaces alone may not
// read, and returns these members.
func (s *Simulation) Inaccessible(f *facts.Facts, scopes []scope.Scope) map[string]struct{} {
	operatorNamespace := f.Key.Namespace

	account := s.Writers.AccountOf(operatorNamespace)
	if !s.Writers.IsConfined() || account == "" {
		return nil
	}

	closed := map[string]struct{}{}

	for i := range scopes {
		for _, name := range slices.Concat(scopes[i].Members.Named, scopes[i].Reported) {
			if name != operatorNamespace && !s.mayRead(scope.AccountUser(operatorNamespace, account), name) {
				closed[name] = struct{}{}
			}
		}
	}

	read.Inaccessible(f, closed)

	return closed
}

// mayRead says whether a user may read what a namespace holds of Roles and RoleBindings, as the manager finds out by trying.
func (s *Simulation) mayRead(name, namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if name == "" {
		name = s.Writers.User
	}

	if s.cluster.get(named(namespaceKind, "", namespace)) == nil {
		return false
	}

	held, known, err := s.held(name, namespace)
	if err != nil {
		s.failed = errors.Join(s.failed, err)
	}

	return !known || authority.Missing(held, read.Entry()) == nil
}
