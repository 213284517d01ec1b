package simulation

import (
	"cmp"
	"errors"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/projected"
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

// mayRead is why a user may not read what a namespace holds of Roles and RoleBindings, as the manager finds out by trying; nil
// where they may. Without a name, the user is whoever looks for the namespace that is reconciled. Where the API server cannot be
// asked what they hold, they count as allowed.
func (s *Simulation) mayRead(name, namespace string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if account := s.Writers.AccountOf(s.key.Namespace); name == "" && account != "" && s.key.Family == scope.NamespaceScopes {
		name = scope.AccountUser(s.key.Namespace, account)
	}

	u := &user{s, cmp.Or(name, s.Writers.User), s.Writers.User}

	for _, kind := range []projected.Kind{projected.Role, projected.RoleBinding} {
		gvk := rbacv1.SchemeGroupVersion.WithKind(string(kind))

		for _, verb := range []string{"list", "watch"} {
			err := u.mayAsk(&request{verb: verb, key: named(gvk.GroupKind(), namespace, ""), gvk: gvk, dryRun: true})

			switch {
			case err == nil:
			case apierrors.IsForbidden(err):
				return err
			default:
				s.failed = errors.Join(s.failed, err)

				return nil
			}
		}
	}

	if s.cluster.get(named(namespaceKind, "", namespace)) == nil {
		return errNoNamespace(namespace)
	}

	return nil
}
