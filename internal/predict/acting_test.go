package predict_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/predict"
)

// TestActingAsOthers has what Ambit may do as the account of a scope, whatever that account itself may do.
func TestActingAsOthers(t *testing.T) {
	t.Parallel()

	const (
		on      = "impersonate-on:serviceaccount:"
		refused = "Ambit may not act as service account ops/delegate"
	)

	anybody := ruleOf("impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts")
	asks := ruleOf(on+"create", "authorization.k8s.io", "selfsubjectrulesreviews")
	copies := ruleOf(on+"get,"+on+"create,"+on+"patch,"+on+"delete", rbacv1.GroupName, "roles,rolebindings")
	lists := ruleOf(on+"patch,"+on+"delete", "", "configmaps")
	restarts := ruleOf(on+"patch", "apps", "deployments")
	older := ruleOf("impersonate", "", "serviceaccounts")

	other := older
	other.ResourceNames = []string{"other"}

	for name, tc := range map[string]struct {
		reason     string
		kubernetes string
		holds      []rbacv1.PolicyRule
		unknown    bool
		// list and change are what is said of the list and of copies; empty when they are written.
		list, change string
	}{
		"the closed list": {
			"it has all that is written", "v1.36.0", []rbacv1.PolicyRule{anybody, asks, copies, lists, restarts}, false, "", "",
		},
		"without lists": {
			"nothing else stands in for a verb on a resource", "v1.37.1",
			[]rbacv1.PolicyRule{anybody, asks, copies, restarts}, false,
			`cannot impersonate-on:serviceaccount:patch resource "configmaps" in API group "" in the namespace "ops"`, "",
		},
		"as nobody": {
			"both rights are asked for", "v1.36.0", []rbacv1.PolicyRule{asks, copies, lists, restarts}, false,
			refused, refused,
		},
		"an API server that cannot limit": {
			"it knows the older right alone", "v1.35.2", []rbacv1.PolicyRule{anybody, asks, copies, lists, restarts}, false,
			refused, refused,
		},
		"the older right":                  {"it is for everything", "v1.37.0", []rbacv1.PolicyRule{older}, false, "", ""},
		"the older right, on an older one": {"it is for everything", "v1.35.2", []rbacv1.PolicyRule{older}, false, "", ""},
		"the older right, to other accounts": {
			"it names the account", "v1.35.2", []rbacv1.PolicyRule{other}, false, refused, refused,
		},
		"nobody knows": {"what nobody knows is not said to be refused", "v1.37.0", nil, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, "a")
			w.delegate()
			// The list is made by the patch that applies it.
			w.objects = slices.DeleteFunc(w.objects, func(obj client.Object) bool { return obj.GetName() == "list" })
			w.manager.Namespace, w.manager.Account = "ambit-system", "ambit"

			in, _ := w.begin()
			in.Kubernetes = tc.kubernetes
			ask := in.Ask
			in.Ask = func(user, namespace string) ([]rbacv1.PolicyRule, bool, error) {
				if user == "system:serviceaccount:ambit-system:ambit" {
					return tc.holds, !tc.unknown, nil
				}

				return ask(user, namespace)
			}

			out := predicted(w, in)
			if len(out.Lists) != 1 || len(out.Changes) == 0 {
				t.Fatalf("there is nothing to write: %+v", out)
			}

			for what, is := range map[string][2]string{
				"the list": {refusal(out.Lists[0].Refusal), tc.list}, "a copy": {refusal(out.Changes[0].Refusal), tc.change},
			} {
				if is[1] == "" && is[0] != "" || !strings.Contains(is[0], is[1]) {
					t.Errorf("%s: got %q, want %q; %s", what, is[0], is[1], tc.reason)
				}
			}
		})
	}
}

func refusal(r *predict.Refusal) string {
	if r == nil {
		return ""
	}

	return r.Message
}
