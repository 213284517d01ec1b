package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/cli/served"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestOneNamespaceIsAskedAbout holds, by the audit log, that a question about one namespace reads that namespace and the operator
// namespaces of the scopes that reach it, and that the answer is that of ambit matrix, which reads all of them.
func TestOneNamespaceIsAskedAbout(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, other, m, n := w.Namespace("ops"), w.Namespace("ops"), w.Namespace("m"), w.Namespace("m")
	w.Operator(ops, "op", "get,update widgets.example.com")
	w.Operator(other, "op", "get secrets")
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m, n}}), metav1.ConditionTrue, "Reconciled")
	w.Reports(w.Scope(other, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{n}}), metav1.ConditionTrue, "Reconciled")

	var inside served.OperatorsData

	// A ScopeInstance of another test whose status does not say yet how far it reaches has everything read.
	attempts := 0

	w.Eventually("nothing else is read", func() error {
		attempts++

		return onlyReads(w, fmt.Sprintf("asks-%s-%d", ops, attempts), ops, m, []string{other, n}, &inside)
	})

	var matrix overview.Matrix

	out, errOut, code := run(w, "matrix", "-o", "json", "--in", m)
	if err := json.Unmarshal([]byte(out), &matrix); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, %v: %s", code, err, errOut)
	}

	serving := 0

	for _, o := range inside.Operators {
		if o.Namespace != ops && o.Namespace != other {
			continue // Of another test, in the whole cluster.
		}

		isSame := func(c overview.Cell) bool { return c.Operator == o.Operator && c.Namespace == m && c.State == o.State }
		if !slices.ContainsFunc(matrix.Cells, isSame) || o.State != overview.Served || len(o.Scopes) != 1 {
			t.Errorf("%s is %s for %v, and in the matrix %+v", o.Operator, o.State, o.Scopes, matrix.Cells)
		}

		if serving++; o.Namespace != ops || (len(o.APIs) != 1 || o.APIs[0].You != "edit") {
			t.Errorf("its custom resources are %+v", o.APIs)
		}
	}

	if serving != 1 {
		t.Errorf("%d operators serve %s: %+v", serving, m, inside)
	}
}

// onlyReads asks about a namespace that an operator of ops serves, as a user who may read everything, and returns an error if the
// other namespaces are read for it.
func onlyReads(w *testbed.World, user, ops, namespace string, others []string, inside *served.OperatorsData) error {
	w.Helper()

	ref, subjects := binding(user, "cluster-admin")
	w.Make(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects})

	*inside = served.OperatorsData{}

	out, errOut, code := as(w, user, "operators", "-n", namespace, "-o", "json")
	if err := json.Unmarshal([]byte(out), inside); err != nil || code != cli.ExitDone {
		w.Fatalf("exit code %d, %v: %s", code, err, errOut)
	}

	if out, errOut, code := as(w, user, "why", ops+"/op", "-n", namespace); code != cli.ExitDone {
		w.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	for _, r := range w.RequestsAs(user) {
		isEverywhere := r.Object.Namespace == "" && !slices.Contains(listable(), r.Object.Resource)
		if r.Verb == "list" && (isEverywhere || slices.Contains(others, r.Object.Namespace)) {
			return fmt.Errorf("what has nothing to do with %s is asked for: %s", namespace, &r)
		}
	}

	return nil
}

// listable are the resources that may be listed in the whole cluster: what declares scopes, and what is in no namespace.
func listable() []string {
	return []string{
		"namespacescopes", "scopetemplates", "scopeinstances", "operatorgroups", "clusterroles", "clusterrolebindings",
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
	}
}
