package simulation

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatIsHandedOutIsCompared: whoever writes again what is there hands out nothing, and whoever writes something else does.
func TestWhatIsHandedOutIsCompared(t *testing.T) {
	t.Parallel()

	rules := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}
	}
	bound := func(role, account string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			RoleRef: rbacv1.RoleRef{Kind: "Role", Name: role}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account}},
		}
	}

	for reason, tc := range map[string]struct {
		was, is handed
		same    bool
	}{
		"the same rules":    {handedOut(&rbacv1.Role{Rules: rules("get")}), handedOut(&rbacv1.Role{Rules: rules("get")}), true},
		"none, in two ways": {handedOut(&rbacv1.Role{}), handedOut(&rbacv1.Role{Rules: []rbacv1.PolicyRule{}}), true},
		"another verb":      {handedOut(&rbacv1.Role{Rules: rules("get")}), handedOut(&rbacv1.Role{Rules: rules("list")}), false},
		"the same binding":  {handedOut(bound("a", "x")), handedOut(bound("a", "x")), true},
		"of another role":   {handedOut(bound("a", "x")), handedOut(bound("b", "x")), false},
		"for somebody else": {handedOut(bound("a", "x")), handedOut(bound("a", "y")), false},
	} {
		if got := tc.was.is(tc.is); got != tc.same {
			t.Errorf("%s: taken for the same: %t", reason, got)
		}
	}
}

// TestRolesThatSelectEachOther: each gives what any of them selects.
func TestRolesThatSelectEachOther(t *testing.T) {
	t.Parallel()

	role := func(label, selects, verb string) *rbacv1.ClusterRole {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: ""}}}
		if selects == "" {
			r.Rules = []rbacv1.PolicyRule{{Verbs: []string{verb}}}
		} else {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: selects, Operator: metav1.LabelSelectorOpExists}}},
			}}
		}

		return r
	}

	e := &everywhere{roles: map[string]*rbacv1.ClusterRole{
		"one": role("a", "b", ""), "other": role("b", "a", ""), "of one": role("b", "", "get"), "of the other": role("a", "", "list"),
		"of none": role("c", "", "delete"),
	}}

	for _, name := range []string{"one", "other"} {
		var got []string
		for _, r := range e.rulesOf(name, map[string]struct{}{}) {
			got = append(got, r.Verbs...)
		}

		slices.Sort(got)

		if !slices.Equal(got, []string{"get", "list"}) {
			t.Errorf("%s gives %v", name, got)
		}
	}
}
