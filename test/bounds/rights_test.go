package bounds_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// millions are rules of a few kilobytes that stand for a million rights each, of which some are held.
func millions(rules int) []rbacv1.PolicyRule {
	list := func(n int, word string) []string {
		out := []string{word}
		for i := range n {
			out = append(out, fmt.Sprint(word[:1], i))
		}

		return out
	}

	out := make([]rbacv1.PolicyRule, rules)
	for i := range out {
		out[i] = rbacv1.PolicyRule{APIGroups: append(list(60, "apps"), ""), Resources: list(60, "secrets"), Verbs: list(300, "get")}
	}

	return out
}

// TestShortRulesStarveNobody: the administrator of one member makes rules of the copy there that stand for millions of rights,
// and another tenant does the same with a Role beside their scope. The copy is put right, the Role is left out and the scope says
// so, and Ambit stays small and serves others.
//
// Such objects are written by a cluster administrator here: from a tenant, the API server compares them right by right.
func TestShortRulesStarveNobody(t *testing.T) {
	w := beds.Quiet(t, "delegated")
	evil, home, member, joins := w.Namespace("evil"), w.Namespace("home"), w.Namespace("member"), w.Namespace("joins")
	fellow := w.Namespace("fellow")

	w.Operator(evil, "op", "get secrets")
	w.Delegate(evil, []string{"get secrets"}, fellow)
	w.Operator(home, "op", "get secrets")
	w.Delegate(home, []string{"get secrets"}, member, joins)

	others := w.Scope(home, testbed.DelegatedBy("delegate", member))
	w.Reports(others, yes, "Reconciled")

	served := func() {
		w.Helper()

		for _, members := range [][]string{{member, joins}, {member}} {
			w.Serves(
				func() { w.Change(others, func() { others.Spec = testbed.DelegatedBy("delegate", members...) }) },
				func() bool { return w.Allowed(home, "op", joins, "get secrets") == (len(members) > 1) })
		}
	}

	roles := &rbacv1.RoleList{}
	copies := func() []rbacv1.Role {
		w.Helper()

		if err := w.Client.List(w.Context(), roles, client.InNamespace(member), client.HasLabels{"ambit.dev/scope"}); err != nil {
			t.Fatal(err)
		}

		return roles.Items
	}

	forged := copies()
	if len(forged) != 1 {
		t.Fatalf("there are %d copies", len(forged))
	}

	w.Change(&forged[0], func() { forged[0].Rules = millions(3) })
	w.Within(long, "the copy is put right", func() error {
		for _, role := range copies() {
			if len(role.Rules) > 1 {
				return fmt.Errorf("%s has %d rules", role.Name, len(role.Rules))
			}
		}

		return nil
	})
	w.May(home, "op", member, "get secrets")
	served()
	bounded(w)

	w.Make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: evil, Name: "many"}, Rules: millions(3)},
		testbed.Bind(evil, "Role", "many", evil, "op"))

	nss := w.Scope(evil, testbed.DelegatedBy("delegate", fellow))
	w.Reports(nss, no, "LimitExceeded", "1 Roles")

	w.May(evil, "op", fellow, "get secrets")
	served()
	bounded(w)
}
