package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/explain"
)

// Rights reads everything that an account holds in a namespace.
func (r *Reader) Rights(ctx context.Context, a explain.Account, namespace string) ([]explain.Right, error) {
	var (
		bindings   rbacv1.RoleBindingList
		everywhere rbacv1.ClusterRoleBindingList
		roles      = explain.Roles{Roles: map[string]*rbacv1.Role{}, ClusterRoles: map[string]*rbacv1.ClusterRole{}}
	)

	if _, err := r.Need(ctx, &bindings, "rolebindings", namespace); err != nil {
		return nil, err
	}

	if _, err := r.Need(ctx, &everywhere, "clusterrolebindings", ""); err != nil {
		return nil, err
	}

	wanted := map[rbacv1.RoleRef]struct{}{}

	for _, right := range explain.Of(a, bindings.Items, everywhere.Items, &roles) {
		wanted[rbacv1.RoleRef{Kind: right.Role.Kind, Name: right.Role.Name}] = struct{}{}
	}

	if err := r.rolesOf(ctx, wanted, namespace, &roles); err != nil {
		return nil, err
	}

	return explain.Of(a, bindings.Items, everywhere.Items, &roles), nil
}

// rolesOf reads the roles that bindings of a namespace refer to. One that does not exist is left out.
func (r *Reader) rolesOf(
	ctx context.Context, wanted map[rbacv1.RoleRef]struct{}, namespace string, roles *explain.Roles,
) error {
	refs := slices.Collect(maps.Keys(wanted))

	var mu sync.Mutex

	return r.Each(ctx, "reading roles", len(refs), func(i int) error {
		role, exists, err := r.role(ctx, refs[i], namespace)
		if err != nil || !exists {
			return err
		}

		mu.Lock()
		defer mu.Unlock()

		switch role := role.(type) {
		case *rbacv1.Role:
			roles.Roles[refs[i].Name] = role
		case *rbacv1.ClusterRole:
			roles.ClusterRoles[refs[i].Name] = role
		}

		return nil
	})
}

// role reads a role; a typed nil when the caller may not read it.
func (r *Reader) role(ctx context.Context, ref rbacv1.RoleRef, namespace string) (role client.Object, exists bool, err error) {
	key := client.ObjectKey{Name: ref.Name}
	role, unread := client.Object(&rbacv1.ClusterRole{}), client.Object((*rbacv1.ClusterRole)(nil))

	if ref.Kind == "Role" {
		key.Namespace = namespace
		role, unread = &rbacv1.Role{}, (*rbacv1.Role)(nil)
	}

	switch err := r.Get(ctx, key, role); {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case apierrors.IsForbidden(err):
		return unread, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	default:
		return role, true, nil
	}
}
