package attacks_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// A quota that leaves no room for another Role or RoleBinding in a member keeps that member out, and no other; and it keeps
// nothing alive: what a source loses is lost in a namespace in which nothing can be made.
func TestQuotaInAMember(t *testing.T) {
	w := begin(t, "cluster")
	ops, full, roomy := w.Namespace("home"), w.Namespace("full"), w.Namespace("roomy")
	w.Operator(ops, "op", "get secrets", "list pods")

	nss := w.Scope(ops, testbed.Members(full, roomy))
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", full, "get secrets")

	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	for _, l := range []client.ObjectList{roles, bindings} {
		if err := w.Client.List(t.Context(), l, client.InNamespace(full)); err != nil {
			t.Fatal(err)
		}
	}

	w.Make(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: full, Name: "full"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/roles.rbac.authorization.k8s.io":        *resource.NewQuantity(int64(len(roles.Items)), resource.DecimalSI),
			"count/rolebindings.rbac.authorization.k8s.io": *resource.NewQuantity(int64(len(bindings.Items)), resource.DecimalSI),
		}},
	})
	w.Eventually("nothing more can be made", func() error {
		if err := w.Client.Create(t.Context(), testbed.Role(full, "one-more"), client.DryRunAll); err == nil {
			return errors.New("there is room")
		}

		return nil
	})

	w.Grant(ops, "another", ops, "op", "get services")
	w.May(ops, "op", roomy, "get services")
	w.Reports(nss, no, "MembersFailed", full)

	source := testbed.Role(ops, "op-role")
	w.Change(source, func() { source.Rules = source.Rules[1:] })
	w.MayNot(ops, "op", full, "get secrets")
	w.May(ops, "op", full, "list pods")

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
	w.MayNot(ops, "op", full, "list pods")

	if left := append(copies(w, full), copies(w, roomy)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
