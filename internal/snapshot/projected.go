package snapshot

import (
	"cmp"
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Projected returns the services that Ambit's objects in a namespace report: whoever owns the namespace may not be able to read
// the scopes themselves.
func (r *Reader) Projected(ctx context.Context, namespace string) ([]overview.Service, error) {
	var (
		bindings rbacv1.RoleBindingList
		roles    rbacv1.RoleList
	)

	if _, err := r.Need(ctx, &bindings, "rolebindings", namespace); err != nil {
		return nil, err
	}

	if _, err := r.Need(ctx, &roles, "roles", namespace); err != nil {
		return nil, err
	}

	known := explain.Roles{Roles: map[string]*rbacv1.Role{}, ClusterRoles: map[string]*rbacv1.ClusterRole{}}
	for i := range roles.Items {
		known.Roles[roles.Items[i].Name] = &roles.Items[i]
	}

	if err := r.rolesOf(ctx, ofInstances(bindings.Items), namespace, &known); err != nil {
		return nil, err
	}

	found := map[string]int{}

	var out []overview.Service

	for i := range bindings.Items {
		b := &bindings.Items[i]

		owner := explain.ScopeOf(b, &known)
		if owner == nil {
			continue
		}

		role := overview.Role{Name: b.RoleRef.Kind + " " + b.RoleRef.Name}
		if live := known.Roles[b.RoleRef.Name]; live != nil && b.RoleRef.Kind == "Role" {
			role.Rules = append([]rbacv1.PolicyRule{}, live.Rules...) // Known, also where there are none.

			if source, ok := explain.RefOf(live.Annotations[scope.AnnotationSource]); ok {
				role.Name = source.String()
			}
		}

		for _, s := range b.Subjects {
			operator := overview.Operator{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
			if s.Kind == rbacv1.ServiceAccountKind {
				operator.Namespace = cmp.Or(s.Namespace, b.Namespace) // As the API server's authorizer reads it.
			}

			key := operator.Kind + " " + operator.String() + " " + owner.String()

			at, is := found[key]
			if !is {
				at = len(out)
				found[key] = at
				out = append(out, overview.Service{
					Operator: operator, Namespace: namespace, Scope: owner.String(), State: overview.Served,
				})
			}

			out[at].Roles = append(out[at].Roles, role)
		}
	}

	return out, nil
}

// ofInstances are the ClusterRoles of bindings that bear the marks of a ScopeInstance: these alone say whether Ambit made them.
func ofInstances(bindings []rbacv1.RoleBinding) map[rbacv1.RoleRef]struct{} {
	out := map[rbacv1.RoleRef]struct{}{}

	for i := range bindings {
		if owner := explain.ScopeOf(&bindings[i], &explain.Roles{}); owner != nil && owner.Kind == "ScopeInstance" {
			out[bindings[i].RoleRef] = struct{}{}
		}
	}

	return out
}
