package reconcile_test

import (
	"slices"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestInstalledOperatorsWorkInMembers: an operator that Ambit installed and that reads the list of a scope may do in the members
// what it may do in its own namespace, as one that OLM installed, and no more.
func TestInstalledOperatorsWorkInMembers(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", `{"targetNamespaces":["ops>","a>"]}`)
	w.csv("*", managed)
	w.installed()

	// rights are those in the member b, once the Role that is replaced is gone.
	rights := func(reason string, want ...string) {
		t.Helper()

		var got []string

		if until(w.Context(), func() bool {
			w.settleWithCSVs()
			w.reconcileGroup()
			w.rollOut()
			w.reconcileGroup()
			w.settleWithCSVs()

			got = nil

			for _, obj := range w.copiesOf("b", &rbacv1.RoleList{}) {
				role, _ := obj.(*rbacv1.Role)
				got = append(got, words(role.Rules))
			}

			return slices.Equal(got, want)
		}) != nil {
			t.Errorf("%s: in the member there is %q, and not %q", reason, got, want)
		}
	}

	w.scope(`{"namespaceMembers":["b>"],"csvInjector":{"enable":true}}`)
	rights("it joins", "get secrets")
	is(w, "where it may work", w.served(), []string{"a", "b", "ops"})
	is(w, "the list", w.list(), "b,ops")

	c := &olmv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op.v1"}}
	permissions := func(rules ...string) func() {
		return func() {
			given := &c.Spec.InstallStrategy.StrategySpec.Permissions[0]
			given.Rules = nil

			for _, rule := range rules {
				given.Rules = append(given.Rules, testbed.Rule(rule))
			}
		}
	}

	w.Change(c, permissions("get secrets", "list pods"))
	rights("more is asked for", "get secrets; list pods")
	w.Change(c, permissions("list pods"))
	rights("less is asked for", "list pods")
	w.respec(`{"csvInjector":{"enable":true}}`)
	rights("the member leaves")
	is(w, "where it may work then", w.served(), []string{"a", "ops"})
}
