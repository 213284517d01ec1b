package authority

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// GrantFor is the least by which an account can write what the scope projects: the right to write roles and rolebindings,
// the rules of every copied Role, because the API server lets nobody write a rule that they do not hold, and the right to
// bind the ClusterRoles, by name. Rules are taken over as they are, in the order of the Roles' names.
func GrantFor(p *plan.ScopePlan) []rbacv1.PolicyRule {
	var copied []rbacv1.PolicyRule

	bound := map[string]struct{}{}

	for i := range p.Copies {
		c := &p.Copies[i]

		switch {
		case c.Kind == projected.Role:
			copied = append(copied, c.Rules...)
		case c.RoleRef.Kind == "ClusterRole":
			bound[c.RoleRef.Name] = struct{}{}
		}
	}

	rules := GrantForInstalls(copied)

	if len(bound) > 0 {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
			ResourceNames: slices.Sorted(maps.Keys(bound)), Verbs: []string{"bind"},
		})
	}

	return rules
}

// GrantForInstalls is the least by which an account can permit operators these rules in a namespace that they serve.
func GrantForInstalls(permitted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings", "roles"},
		Verbs: []string{"create", "delete", "get", "list", "patch", "watch"},
	}}

	for i := range permitted {
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, permitted[i]) }) {
			rules = append(rules, permitted[i])
		}
	}

	return rules
}

// GrantInOperatorNamespace is the least by which an account can do what a scope asks for in its own namespace: write and delete
// the watch list, inject it, and restart whoever reads it. Workloads are injected into by the right that restarts them.
// Webhook configurations have no namespace, so nobody in one can authorize a change of them.
func GrantInOperatorNamespace(s *scope.Scope) []rbacv1.PolicyRule {
	rules := InOperatorNamespace(s.WatchList)
	if s.TouchesCSVs() {
		rules = append(rules, OfInjection(plan.CSVKind)...)
	}

	return rules
}

// GrantOfEverything are the rules that the first NamespaceScope operators asked for: everything in the namespace, and the right
// to grant others any rule.
func GrantOfEverything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll},
			Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"bind", "escalate"}},
	}
}
