package snapshot

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// rbacList is a list of roles or bindings in a namespace, or with an empty one in the whole cluster.
type rbacList struct{ resource, namespace string }

// HasRBAC says whether all roles and bindings that count in a namespace were read, or with an empty one those of the cluster.
func (s *Snapshot) HasRBAC(namespace string) bool {
	return s.has("clusterroles", "") && s.has("clusterrolebindings", "") &&
		(namespace == "" || s.has("roles", namespace) && s.has("rolebindings", namespace))
}

func (s *Snapshot) has(resource, namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.rbac[rbacList{resource, ""}] || s.rbac[rbacList{resource, namespace}]
}

// Lacks says whether the bindings of a namespace were read, and none of them gives something to what a ClusterServiceVersion
// installs.
func (s *Snapshot) Lacks(csv scope.Owner, namespace string) bool {
	binds := func(p *facts.Projected) bool { return p.RoleKind != "" && !p.Empty }

	return s.has("rolebindings", namespace) &&
		!slices.ContainsFunc(s.once.Store.Held(scope.Installs.In(csv.Namespace), csv.String(), namespace), binds)
}

// Bindings adds to a snapshot the RoleBindings of some namespaces, where they were not read yet.
func (r *Reader) Bindings(ctx context.Context, s *Snapshot, namespaces []string) error {
	return r.rbacIn(ctx, s, namespaces, &rbacv1.RoleBindingList{}, "rolebindings")
}

// rbac lists Roles or RoleBindings everywhere, or if that is forbidden, in each of the namespaces that matter.
func (r *Reader) rbac(ctx context.Context, s *Snapshot, namespaces []string, list client.ObjectList, resource string) error {
	listed, err := r.Lists(ctx, list, resource, "")
	if err != nil {
		return err
	}

	if listed == Complete {
		s.takeRBAC(list, rbacList{resource, ""}, listed)

		return nil
	}

	return r.rbacIn(ctx, s, namespaces, list, resource)
}

// rbacIn lists roles or bindings in those of some namespaces in which that was not done yet.
func (r *Reader) rbacIn(ctx context.Context, s *Snapshot, namespaces []string, list client.ObjectList, resource string) error {
	return r.Each(ctx, "reading "+resource, len(namespaces), func(i int) error {
		if s.has(resource, namespaces[i]) {
			return nil
		}

		one, _ := list.DeepCopyObject().(client.ObjectList) // A copy has the type of its original.

		listed, err := r.Need(ctx, one, resource, namespaces[i])
		if err == nil {
			s.takeRBAC(one, rbacList{resource, namespaces[i]}, listed)
		}

		return err
	})
}

func (s *Snapshot) takeRBAC(list client.ObjectList, of rbacList, listed Listed) {
	s.mu.Lock()
	s.rbac[of] = listed == Complete
	s.mu.Unlock()

	s.take(list)
}
