package simulation

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
)

// everywhere are the roles and bindings of the whole cluster, as of a write.
type everywhere struct {
	at       int
	roles    map[string]*rbacv1.ClusterRole
	bindings []rbacv1.ClusterRoleBinding
	// gives is what they give a user.
	gives map[string][]rbacv1.PolicyRule
}

// clusterWide are the roles and bindings of the whole cluster that are in memory.
func (s *Simulation) clusterWide() *everywhere {
	at := s.cluster.permissions[""]
	if s.everywhere != nil && s.everywhere.at == at {
		return s.everywhere
	}

	s.everywhere = &everywhere{at: at, roles: map[string]*rbacv1.ClusterRole{}, gives: map[string][]rbacv1.PolicyRule{}}

	readAll(s.cluster, "ClusterRole", "", func(r *rbacv1.ClusterRole) { s.everywhere.roles[r.Name] = r })
	readAll(s.cluster, "ClusterRoleBinding", "", func(b *rbacv1.ClusterRoleBinding) {
		s.everywhere.bindings = append(s.everywhere.bindings, *b)
	})

	// What was written in memory may be part of an aggregated role, of which nothing else is known then than what it was.
	if at > 0 && s.HasRBAC("") {
		s.everywhere.aggregate()
	}

	return s.everywhere
}

// aggregate gives aggregated roles the rules of those that they select, as the cluster's controller does
// (k8s.io/kubernetes/pkg/controller/clusterroleaggregation). One may select another.
func (e *everywhere) aggregate() {
	of := map[string][]rbacv1.PolicyRule{}

	var rules func(name string, within []string) []rbacv1.PolicyRule

	rules = func(name string, within []string) []rbacv1.PolicyRule {
		role := e.roles[name]
		if role.AggregationRule == nil {
			return role.Rules
		}

		if known, is := of[name]; is || slices.Contains(within, name) {
			return known
		}

		var out []rbacv1.PolicyRule

		for other, from := range e.roles {
			if other != name && explain.Aggregates(role.AggregationRule, from.Labels) {
				out = append(out, rules(other, append(slices.Clone(within), name))...)
			}
		}

		of[name] = out

		return out
	}

	filled := map[string]*rbacv1.ClusterRole{}

	for name, role := range e.roles {
		if role.AggregationRule != nil {
			filled[name] = role.DeepCopy()
			filled[name].Rules = rules(name, nil)
		}
	}

	maps.Copy(e.roles, filled)
}
