package reconcile_test

import (
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// boundTo are the namespaces of the bindings to a service account of the operator namespace.
func (w *world) boundTo(account string) []string {
	w.Helper()

	var (
		list rbacv1.RoleBindingList
		out  []string
	)

	if err := w.client.List(w.Context(), &list); err != nil {
		w.Fatal(err)
	}

	for i := range list.Items {
		if b := &list.Items[i]; subjects(b.Subjects) == w.ns(ops)+"/"+account {
			out = append(out, w.called(b.Namespace))
		}
	}

	return out
}

// TestOvertakenBeforeItRan: a version that never ran, because a newer one came with it, gets nothing while that one begins, and
// nothing when it has: neither permissions nor ClusterRoles for users of what it alone would bring. The Deployment that the newer
// one rolls out has the name of its own.
func TestOvertakenBeforeItRan(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.definition("pots", "Pot")
	w.group("group", inA)
	w.csv("*", w.owning("pots", "Pot"), func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = "older"
	})
	w.csvIn(ops, "*", func(c *olmv1alpha1.ClusterServiceVersion) { c.Name, c.Spec.Replaces = "op.v2", "op.v1" })

	nothing := func(when string) {
		w.Helper()
		is(w, "where the older one has permissions "+when, w.boundTo("older"), nil)
		is(w, "how many ClusterRoles there are for its API "+when, len(w.userRoles()), 0)
	}

	w.reconcileGroup()
	is(w, "phases", []string{w.phase(), w.phaseOf("op.v2")}, []string{replaced, installing})
	nothing("while the newer one begins")

	w.rollOut()

	for range most {
		c := w.groupOnce()
		if len(c.writes) == 0 {
			break
		}

		nothing("when the newer one runs")
	}

	is(w, "phase of the newer one", w.phaseOf("op.v2"), succeeded)

	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op.v1"}, &olmv1alpha1.ClusterServiceVersion{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the older one is there: %v", err)
	}
}
