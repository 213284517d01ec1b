package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// To is the rule that allows verbs on a resource: on the object of a name, or without one on all.
func To(what schema.GroupResource, name string, verbs ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{what.Group}, Resources: []string{what.Resource}, Verbs: slices.Clone(verbs)}
	if name != "" {
		r.ResourceNames = []string{name}
	}

	return r
}

// Allow says whether rules allow a request, as the API server's authorizer does. A request that names no object, such as one for
// all of them, has the empty name there, and a rule may be limited to that (ResourceNameMatches in
// k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go).
func Allow(rules []rbacv1.PolicyRule, what schema.GroupResource, name, verb string) bool {
	asked := To(what, "", verb)
	asked.ResourceNames = []string{name}

	return Covers(rules, []rbacv1.PolicyRule{asked})
}

// GivenBy are the rules that a ClusterRole gives. One that takes them from others may give anything
// (k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased: "to set the aggregation rule, since it can gather anything").
func GivenBy(role *rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if !IsAggregated(role) {
		return role.Rules
	}

	return Everything()
}

// IsAggregated says whether a ClusterRole takes its rules from others.
func IsAggregated(role *rbacv1.ClusterRole) bool {
	return role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
}

// Everything are the rules that allow everything.
func Everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}
}
