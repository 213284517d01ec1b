package predict_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestCopyOfAnotherScopeGrants holds that an account which lacks something at first is served where a copy of another scope, from
// the same plan, gives it that.
func TestCopyOfAnotherScopeGrants(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()
	w.holds = []rbacv1.PolicyRule{
		ruleOf("create,patch,delete", rbacv1.GroupName, "roles,rolebindings"), ruleOf("*", "", "configmaps"),
		ruleOf("patch", "apps", "deployments"),
	}

	alone := w.predict()
	if failed := failedIn(alone); !slices.Equal(failed, []string{"a"}) {
		t.Fatalf("the account lacks nothing: %v", failed)
	}

	binding := bindingOf("ops", "for-delegate", "r")
	binding.Subjects[0].Name = "delegate"
	w.add(binding)

	other := &operatorv1.NamespaceScope{ObjectMeta: at("ops", "t"), Spec: operatorv1.NamespaceScopeSpec{
		ConfigmapName: "other", NamespaceMembers: []string{"a"}, ServiceAccountMembers: []string{"delegate"},
	}}
	other.UID, other.Finalizers = "6", []string{operatorv1.Finalizer}
	w.declared = []client.Object{w.scope, other}

	out := w.predict()
	if failed := failedIn(out); len(failed) > 0 || !slices.Contains(out.Scopes[0].Served, "a") {
		t.Errorf("failed %+v, served %v", out.Scopes[0].Failed, out.Scopes[0].Served)
	}
}

// TestBindingOfAnAggregatedRole: whoever binds one has to hold what it gives, and need not hold everything, as whoever writes one
// has to. What it gives is more once a role that it selects is there.
func TestBindingOfAnAggregatedRole(t *testing.T) {
	t.Parallel()

	part := func(name, resource string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"part": "true"}},
			Rules:      []rbacv1.PolicyRule{ruleOf("get", "", resource)},
		}
	}

	for name, tc := range map[string]struct {
		reason string
		// proposed is what the plan is about; whole says that all roles are in memory.
		proposed *rbacv1.ClusterRole
		whole    bool
		refused  bool
	}{
		"Held":     {"the account holds what it gives", nil, false, false},
		"Part":     {"it gives no more than it holds", part("more", "configmaps"), true, false},
		"MorePart": {"it gives nodes, which the account does not hold", part("more", "nodes"), true, true},
		"NotWhole": {"what it selects besides is not known, and so is what it gives", part("more", "nodes"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, "a")
			w.delegate()
			w.holds = []rbacv1.PolicyRule{
				ruleOf("create,patch,delete", rbacv1.GroupName, "roles,rolebindings"), ruleOf("*", "", "configmaps,secrets"),
				ruleOf("patch", "apps", "deployments"),
			}

			viewer := &rbacv1.ClusterRole{
				ObjectMeta: at("", "viewer"), Rules: []rbacv1.PolicyRule{ruleOf("get", "", "secrets")},
				AggregationRule: &rbacv1.AggregationRule{
					ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "true"}}},
				},
			}
			bound := bindingOf("ops", "views", "viewer")
			bound.RoleRef.Kind = "ClusterRole"

			held := &rbacv1.ClusterRole{ObjectMeta: at("", "held"), Rules: w.holds}
			holds := &rbacv1.ClusterRoleBinding{
				ObjectMeta: at("", "held"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "held"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "delegate"}},
			}

			for _, obj := range []client.Object{viewer, part("part", "secrets"), bound, held, holds} {
				w.add(obj)
			}

			in, cluster := w.begin()
			in.HasRBAC = func(string) bool { return tc.whole }

			if tc.proposed != nil {
				if err := cluster.Propose(tc.proposed); err != nil {
					t.Fatal(err)
				}
			}

			if out := predicted(w, in); out.Refused() != tc.refused {
				t.Errorf("%s: refused %v: %+v", tc.reason, out.Refused(), out.Changes)
			}
		})
	}
}
