package narrow

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// inNamespaces returns the RoleBindings of the cluster, and whether these are all.
func (c *cluster) inNamespaces(ctx context.Context) ([]rbacv1.RoleBinding, bool) {
	c.listUsers(ctx)

	everywhere := func(b rbacv1.RoleBinding) bool { return b.Namespace == "" }

	return slices.DeleteFunc(slices.Clone(c.bindings), everywhere), !c.unreadInNamespaces
}

// everywhere returns the ClusterRoleBindings of the cluster, and whether they could be read.
func (c *cluster) everywhere(ctx context.Context) ([]rbacv1.RoleBinding, bool) {
	c.listUsers(ctx)

	inNamespace := func(b rbacv1.RoleBinding) bool { return b.Namespace != "" }

	return slices.DeleteFunc(slices.Clone(c.bindings), inNamespace), !c.unreadEverywhere
}

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

// clusterRoles returns the ClusterRoles of the cluster, and whether they could be read.
func (c *cluster) clusterRoles(ctx context.Context) ([]rbacv1.ClusterRole, bool) {
	c.listUsers(ctx)

	return c.roles, !c.unreadRoles
}

// policies returns the admission policies of the cluster, and whether they could be read.
func (c *cluster) policies(ctx context.Context) ([]admissionv1.ValidatingAdmissionPolicy, bool) {
	var list admissionv1.ValidatingAdmissionPolicyList
	if err := c.List(ctx, &list); err != nil {
		return nil, meta.IsNoMatchError(err) // An API server that has none of the kind has no fence.
	}

	return list.Items, true
}

// listUsers reads what may refer to ClusterRoles, once.
func (c *cluster) listUsers(ctx context.Context) {
	if c.listed {
		return
	}

	c.listed = true

	var (
		inNamespaces rbacv1.RoleBindingList
		everywhere   rbacv1.ClusterRoleBindingList
		roles        rbacv1.ClusterRoleList
	)

	for _, list := range []client.ObjectList{&inNamespaces, &everywhere, &roles} {
		if err := c.List(ctx, list); err != nil {
			c.notef("roles or bindings could not be read, so ClusterRoles stay as they are, because others may use them: %v", err)

			c.unread = true
			c.unreadInNamespaces = c.unreadInNamespaces || list == &inNamespaces
			c.unreadEverywhere = c.unreadEverywhere || list == &everywhere
			c.unreadRoles = c.unreadRoles || list == &roles
		}
	}

	c.bindings = inNamespaces.Items

	for i := range everywhere.Items {
		b := &everywhere.Items[i]
		c.bindings = append(c.bindings, rbacv1.RoleBinding{ObjectMeta: b.ObjectMeta, RoleRef: b.RoleRef, Subjects: b.Subjects})
	}

	c.roles = roles.Items
}

// isOfInput says whether a ClusterRoleBinding is in the input, or is what one of the input became when it was narrowed before: to
// narrow the same again has to give the same. A RoleBinding never is: what one of the input refers to is left as it is.
func isOfInput(s *narrow.Stream, b *rbacv1.RoleBinding) bool {
	if b.Namespace != "" {
		return false
	}

	from, made := strings.CutPrefix(b.Annotations[narrow.AnnotationFrom], "ClusterRoleBinding/")

	return s.Has("ClusterRoleBinding", "", b.Name) || made && s.Has("ClusterRoleBinding", "", from)
}
