package overview

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/plan"
)

// ClusterWide is something that an operator holds in all namespaces, whatever the members of its scopes are.
type ClusterWide struct {
	Operator Operator `json:"operator"`
	// Binding is the ClusterRoleBinding, and Role the ClusterRole. Through is the group by which the binding covers the operator;
	// empty if the binding names it.
	Binding string `json:"binding"`
	Role    string `json:"role"`
	Through string `json:"through,omitempty"`
	// Gives is what it holds, in words, what matters most first. Sensitive says that the rights lead to more than they say.
	Gives     string `json:"gives"`
	Sensitive bool   `json:"sensitive,omitempty"`
	// WayOut says how to narrow it.
	WayOut string `json:"wayOut"`

	words string
}

// String describes it for users.
func (c *ClusterWide) String() string {
	return c.words + " in the whole cluster; to narrow it: " + c.WayOut
}

// ClusterWideOf is what the planner found, by operator.
func ClusterWideOf(found []plan.ClusterWide) []ClusterWide {
	var out []ClusterWide

	for i := range found {
		c := found[i]

		for _, holder := range found[i].Holders {
			c.Holders = []rbacv1.Subject{holder}
			out = append(out, ClusterWide{
				Operator: Operator{holder.Kind, holder.Namespace, holder.Name}, Binding: c.Binding, Role: c.Role, Through: c.Through,
				Gives: c.Gives(), Sensitive: c.Rights[0].Sensitive, WayOut: c.WayOut(), words: c.Words(),
			})
		}
	}

	return out
}

// ClusterWide is what the operators of all services hold in all namespaces, besides what these services' scopes give, sorted by
// operator, what matters most first.
func (o *Overview) ClusterWide() []ClusterWide {
	type by struct {
		operator Operator
		scope    string
	}

	shown := map[by]struct{}{}
	for i := range o.Services {
		shown[by{o.Services[i].Operator, o.Services[i].Scope}] = struct{}{}
	}

	out := []ClusterWide{}

	for i := range o.Scopes {
		for _, c := range o.Scopes[i].ClusterWide {
			if _, is := shown[by{c.Operator, o.Scopes[i].Name}]; is {
				out = append(out, c)
			}
		}
	}

	slices.SortStableFunc(out, func(a, b ClusterWide) int {
		return cmp.Or(compareOperators(a.Operator, b.Operator), boolRank(b.Sensitive)-boolRank(a.Sensitive),
			cmp.Compare(a.Binding, b.Binding), cmp.Compare(a.WayOut, b.WayOut))
	})

	// Several scopes of one operator report the same.
	return slices.CompactFunc(out, func(a, b ClusterWide) bool { return a.Operator == b.Operator && a.Binding == b.Binding })
}

// IsClusterWide says whether an operator holds something in all namespaces.
func (m *Matrix) IsClusterWide(o Operator) bool {
	return slices.ContainsFunc(m.ClusterWide, func(c ClusterWide) bool { return c.Operator == o })
}
