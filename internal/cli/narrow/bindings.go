package narrow

import (
	"context"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// scopes returns the NamespaceScopes of the cluster, and whether they could be read.
func (c *cluster) scopes(ctx context.Context) ([]scope.Scope, bool) {
	var out []scope.Scope

	for _, group := range grant.Groups() {
		found, err := reading.ScopesOf(ctx, c, "", group)
		// Where the kind is not served, there is none.
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return nil, false
		}

		out = append(out, found...)
	}

	return out, true
}

// policies returns the admission policies of the cluster, and whether they could be read.
func (c *cluster) policies(ctx context.Context) ([]admissionv1.ValidatingAdmissionPolicy, bool) {
	var list admissionv1.ValidatingAdmissionPolicyList
	if err := c.List(ctx, &list); err != nil {
		return nil, meta.IsNoMatchError(err) // An API server that has none of the kind has no fence.
	}

	return list.Items, true
}

// once reads a list, once, and says whether it could be read. otherwise says what follows where it could not.
func once[L client.ObjectList, T any](
	ctx context.Context, c *cluster, otherwise string, list L, items func(L) []T,
) func() ([]T, bool) {
	return sync.OnceValues(func() ([]T, bool) {
		err := c.List(ctx, list)
		if err != nil {
			c.notef("%s: %v", otherwise, err)
		}

		return items(list), err == nil
	})
}

// roleBindings, everywhere and clusterRoles read what may refer to ClusterRoles. ClusterRoleBindings have no namespace.
func (c *cluster) roleBindings(ctx context.Context, otherwise string) func() ([]rbacv1.RoleBinding, bool) {
	items := func(l *rbacv1.RoleBindingList) []rbacv1.RoleBinding { return l.Items }

	return once(ctx, c, otherwise, &rbacv1.RoleBindingList{}, items)
}

func (c *cluster) everywhere(ctx context.Context, otherwise string) func() ([]rbacv1.RoleBinding, bool) {
	return once(ctx, c, otherwise, &rbacv1.ClusterRoleBindingList{}, func(l *rbacv1.ClusterRoleBindingList) []rbacv1.RoleBinding {
		return collect.Map(l.Items, func(c rbacv1.ClusterRoleBinding) rbacv1.RoleBinding {
			return rbacv1.RoleBinding{ObjectMeta: c.ObjectMeta, RoleRef: c.RoleRef, Subjects: c.Subjects}
		})
	})
}

func (c *cluster) clusterRoles(ctx context.Context, otherwise string) func() ([]rbacv1.ClusterRole, bool) {
	items := func(l *rbacv1.ClusterRoleList) []rbacv1.ClusterRole { return l.Items }

	return once(ctx, c, otherwise, &rbacv1.ClusterRoleList{}, items)
}
