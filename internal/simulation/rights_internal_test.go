package simulation

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
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
