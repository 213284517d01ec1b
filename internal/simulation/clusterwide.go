package simulation

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// everywhere are the roles and bindings of the whole cluster, as of a write.
type everywhere struct {
	at       int
	roles    map[string]*rbacv1.ClusterRole
	bindings []rbacv1.ClusterRoleBinding
	// filled are the aggregated roles that have the rules of those that they select, and gives is what all give a user.
	filled map[string]struct{}
	gives  map[string][]rbacv1.PolicyRule
}

// clusterWide are the roles and bindings of the whole cluster that are in memory.
func (s *Simulation) clusterWide() *everywhere {
	at := s.cluster.permissions[""]
	if s.everywhere != nil && s.everywhere.at == at {
		return s.everywhere
	}

	s.everywhere = &everywhere{
		at: at, roles: map[string]*rbacv1.ClusterRole{}, filled: map[string]struct{}{}, gives: map[string][]rbacv1.PolicyRule{},
	}

	readAll(s.cluster, "ClusterRole", "", func(r *rbacv1.ClusterRole) { s.everywhere.roles[r.Name] = r })
	readAll(s.cluster, "ClusterRoleBinding", "", func(b *rbacv1.ClusterRoleBinding) {
		s.everywhere.bindings = append(s.everywhere.bindings, *b)
	})

	for i := range s.everywhere.bindings {
		s.fill(s.everywhere.bindings[i].RoleRef)
	}

	return s.everywhere
}

// fill gives the aggregated ClusterRole that a binding refers to the rules of those that it selects: what was written in memory
// may be among these. Others, such as those of every OperatorGroup, are not looked at: that would compare all roles with all.
func (s *Simulation) fill(ref rbacv1.RoleRef) {
	e := s.everywhere
	if projected.Kind(ref.Kind) != projected.ClusterRole || e.at == 0 || !s.HasRBAC("") {
		return
	}

	role := e.roles[ref.Name]
	if _, is := e.filled[ref.Name]; is || role == nil || role.AggregationRule == nil {
		return
	}

	filled := role.DeepCopy()
	filled.Rules = e.rulesOf(ref.Name, map[string]struct{}{})
	e.roles[ref.Name], e.filled[ref.Name] = filled, struct{}{}
}

// rulesOf are the rules of a ClusterRole as the cluster's controller fills it in
// (k8s.io/kubernetes/pkg/controller/clusterroleaggregation). One may select another, and that one the first: those that were seen
// count once.
func (e *everywhere) rulesOf(name string, seen map[string]struct{}) []rbacv1.PolicyRule {
	seen[name] = struct{}{}

	role := e.roles[name]
	if role.AggregationRule == nil {
		return role.Rules
	}

	var out []rbacv1.PolicyRule

	takes := explain.Aggregates(role.AggregationRule)

	for other, from := range e.roles {
		if _, is := seen[other]; !is && takes(from.Labels) {
			out = append(out, e.rulesOf(other, seen)...)
		}
	}

	return out
}
