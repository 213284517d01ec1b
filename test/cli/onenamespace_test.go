package cli_test

import (
	"encoding/json"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/cli/served"
	"github.com/ambit-k8s/ambit/internal/overview"
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

	user := "asks-" + ops
	ref, subjects := binding(user, "cluster-admin")
	w.Make(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects})

	var inside served.OperatorsData

	out, errOut, code := as(w, user, "operators", "-n", m, "-o", "json")
	if err := json.Unmarshal([]byte(out), &inside); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, %v: %s", code, err, errOut)
	}

	if out, errOut, code := as(w, user, "why", ops+"/op", "-n", m); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	for _, r := range w.RequestsAs(user) {
		if r.Verb != "list" {
			continue
		}

		if r.Object.Namespace == "" && !slices.Contains(listable(), r.Object.Resource) {
			t.Errorf("the whole cluster is asked for: %s", &r)
		}

		if r.Object.Namespace == other || r.Object.Namespace == n {
			t.Errorf("a namespace that has nothing to do with it is asked for: %s", &r)
		}
	}

	var matrix overview.Matrix

	out, errOut, code = run(w, "matrix", "-o", "json", "--in", m)
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

// listable are the resources that may be listed in the whole cluster: what declares scopes, and what is in no namespace.
func listable() []string {
	return []string{
		"namespacescopes", "scopetemplates", "scopeinstances", "operatorgroups", "clusterroles", "clusterrolebindings",
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
	}
}
