package snapshot

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rbac lists Roles or RoleBindings everywhere, or where that may not be, in each of the namespaces that matter.
func (r *Reader) rbac(ctx context.Context, s *Snapshot, namespaces []string, list client.ObjectList, resource string) error {
	listed, err := r.Lists(ctx, list, resource, "")
	if err != nil {
		return err
	}

	if listed == Complete {
		return s.take(list)
	}

	s.mu.Lock()
	s.partial = true
	s.mu.Unlock()

	return r.rbacIn(ctx, s, namespaces, list, resource)
}

// rbacIn lists Roles or RoleBindings in each of some namespaces.
func (r *Reader) rbacIn(ctx context.Context, s *Snapshot, namespaces []string, list client.ObjectList, resource string) error {
	return r.Each(ctx, "reading "+resource, len(namespaces), func(i int) error {
		one, _ := list.DeepCopyObject().(client.ObjectList) // A copy has the type of its original.

		listed, err := r.Need(ctx, one, resource, namespaces[i])
		if err != nil {
			return err
		}

		if listed != Complete {
			s.mu.Lock()
			s.closed[namespaces[i]] = struct{}{}
			s.mu.Unlock()
		}

		return s.take(one)
	})
}

func (r *Reader) clusterRoles(ctx context.Context, s *Snapshot) error {
	list := &rbacv1.ClusterRoleList{}

	listed, err := r.Need(ctx, list, "clusterroles", "")
	if err != nil {
		return err
	}

	s.noClusterRoles = listed != Complete

	return s.take(list)
}

func (r *Reader) clusterBindings(ctx context.Context, s *Snapshot) error {
	list := &rbacv1.ClusterRoleBindingList{}

	listed, err := r.Need(ctx, list, "clusterrolebindings", "")
	if err != nil {
		return err
	}

	s.noClusterBindings = listed != Complete

	return s.take(list)
}
