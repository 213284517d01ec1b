package reconcile_test

import (
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRulesThatARoleMayNotHave: the definition of ClusterServiceVersions takes rules that the API server takes in no Role. The
// version fails in the API server's words, and no operator is there without its permissions. The simulation of "ambit plan" has
// a test of the same name, with the same words.
func TestRulesThatARoleMayNotHave(t *testing.T) {
	t.Parallel()

	const forNone = "Failed InstallComponentFailed"

	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		// group is for a, unless something else is said.
		group, phase string
		says         []string
	}{
		"a URL": {
			rule: rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}, phase: forNone, says: []string{
				"Role.rbac.authorization.k8s.io \"op.v1-op-", `rules[0].nonResourceURLs: Invalid value: ["/metrics"]: ` +
					"namespaced rules cannot apply to non-resource URLs",
			},
		},
		"a URL, for all namespaces": {
			rule:  rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
			group: `{}`, phase: installing,
		},
		"a URL and a resource": {
			rule: rbacv1.PolicyRule{
				Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}, APIGroups: []string{""}, Resources: []string{"pods"},
			},
			group: `{}`, phase: forNone, says: []string{"rules cannot apply to both regular resources and non-resource URLs"},
		},
		"no verbs": {
			rule:  rbacv1.PolicyRule{Verbs: []string{}, APIGroups: []string{""}, Resources: []string{"pods"}},
			phase: forNone, says: []string{"rules[0].verbs: Required value: verbs must contain at least one value"},
		},
		"no API group": {
			rule:  rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"pods"}},
			phase: forNone, says: []string{"rules[0].apiGroups: Required value: resource rules must supply at least one api group"},
		},
		"no resource": {
			rule:  rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}},
			phase: forNone, says: []string{"rules[0].resources: Required value: resource rules must supply at least one resource"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.group == "" {
				tc.group = inA
			}

			w := grouped(t)
			w.group("group", tc.group)
			w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
				c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = []rbacv1.PolicyRule{tc.rule}
			})
			w.reconcileGroup()

			is(w, "phase", w.phase(), tc.phase)
			w.names("the message", w.message(), tc.says...)
			is(w, "there is a Deployment", w.told() != "-", tc.phase == installing)
		})
	}
}
