package consent_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
)

// request is one thing that somebody wants to do.
type request struct{ verb, group, resource, name string }

var (
	verbs     = []string{"get", "create", "bind", "escalate"}
	groups    = []string{"", "apps", rbacv1.GroupName}
	resources = []string{"secrets", "secrets/status", "roles", "rolebindings", "clusterroles"}
	names     = []string{"", "a", "b"}
)

// allows is RBAC's own reading of rules (k8s.io/component-helpers/auth/rbac/validation RuleAllows), written down again.
func allows(rules []rbacv1.PolicyRule, r request) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}

	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return has(rule.Verbs, r.verb) && has(rule.APIGroups, r.group) &&
			(has(rule.Resources, r.resource) || r.resource == "secrets/status" && slices.Contains(rule.Resources, "*/status")) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.name))
	})
}

// TestGrantIsExact holds that for every request a grant allows it exactly when the fixed part, a Role that the scope
// projects, or the binding of a ClusterRole that it projects allows it.
func TestGrantIsExact(t *testing.T) {
	t.Parallel()

	some := func(values []string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(append([]string{"*"}, values...)), 1, 3)
	}
	anyRule := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: some(verbs).Draw(t, "verbs"), APIGroups: some(groups).Draw(t, "groups"),
			Resources:     some(append([]string{"*/status"}, resources...)).Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom(names[1:]), 0, 2).Draw(t, "names"),
		}
	})
	fixed := []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	}}

	rapid.Check(t, func(t *rapid.T) {
		h := &consent.Home{Accounts: corev1.ServiceAccountList{Items: []corev1.ServiceAccount{
			{ObjectMeta: metav1.ObjectMeta{Name: "in"}}, {ObjectMeta: metav1.ObjectMeta{Name: "out"}},
		}}}
		wanted := slices.Clone(fixed)

		for _, role := range []string{"a", "b", "c"} {
			rules := rapid.SliceOfN(anyRule, 0, 3).Draw(t, "rules")
			h.Roles.Items = append(h.Roles.Items, rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules})

			for _, kind := range []string{"Role", "ClusterRole"} {
				account := rapid.SampledFrom([]string{"in", "out", "missing"}).Draw(t, "account")
				h.RoleBindings.Items = append(h.RoleBindings.Items, rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: kind + role},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
					Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: account}},
				})

				switch {
				case account != "in":
				case kind == "Role":
					wanted = append(wanted, rules...)
				default:
					wanted = append(wanted, rbacv1.PolicyRule{
						Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName},
						Resources: []string{"clusterroles"}, ResourceNames: []string{role},
					})
				}
			}
		}

		nss := &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "scope"},
			Spec:       operatorv1.NamespaceScopeSpec{ServiceAccountMembers: []string{"in", "missing"}},
		}
		p := h.Plan(nss)
		granted := consent.Rules(p)

		for i := range p.Copies {
			if ref := p.Copies[i].RoleRef; ref.Kind == "ClusterRole" &&
				!allows(granted, request{"bind", rbacv1.GroupName, "clusterroles", ref.Name}) {
				t.Fatalf("the binding of %s is not covered", ref.Name)
			}
		}

		for _, verb := range verbs {
			for _, group := range groups {
				for _, resource := range resources {
					for _, name := range names {
						r := request{verb, group, resource, name}
						if got, want := allows(granted, r), allows(wanted, r); got != want {
							t.Fatalf("%+v: granted %t, needed %t by\n%+v", r, got, want, granted)
						}
					}
				}
			}
		}
	})
}
