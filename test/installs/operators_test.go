package installs_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// TestWhoServesMyNamespace: OLM copies a CSV into each namespace to say so; Ambit has a command for it.
func TestWhoServesMyNamespace(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("answers", "Answer")
	own, served, not := w.Namespace("own"), w.Namespace("served"), w.Namespace("not")
	w.group(own, targets(served))

	op := csv(own, "op.v1", owning(crd, "Answer"))
	rules := &op.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules
	*rules = append(*rules, rbacv1.PolicyRule{
		APIGroups: []string{crd[len("answers."):]}, Resources: []string{"answers"}, Verbs: []string{"get", "update"},
	})
	w.Make(op)
	w.succeeds(op)
	w.told(op, w.groupIn(own))

	out, code := w.Ambit("operators", "-n", served)
	for _, words := range []string{own + "/op", "ClusterServiceVersion " + own + "/op.v1", crd} {
		if code != 0 || !strings.Contains(out, words) {
			t.Errorf("exit code %d, nothing of %q in %s", code, words, out)
		}
	}

	if out, _ := w.Ambit("operators", "-n", not); strings.Contains(out, own+"/op") {
		t.Errorf("it serves another namespace: %s", out)
	}

	if out, _ := w.Ambit("matrix", "--in", served+","+not); !strings.Contains(out, own+"/op") {
		t.Errorf("it is not in the matrix: %s", out)
	}

	w.why(own, served)
}

// why asks for the way by which the operator got its rights.
func (w *world) why(own, served string) {
	w.Helper()

	out, code := w.Ambit("why", own+"/op", "-n", served)
	if code != 0 || !strings.Contains(out, "ClusterServiceVersion "+own+"/op.v1") {
		w.Errorf("exit code %d: %s", code, out)
	}
}

func (w *world) groupIn(namespace string) *operatorsv1.OperatorGroup {
	w.Helper()

	var groups operatorsv1.OperatorGroupList
	if err := w.Client.List(w.Context(), &groups); err != nil {
		w.Fatal(err)
	}

	for i := range groups.Items {
		if groups.Items[i].Namespace == namespace {
			return &groups.Items[i]
		}
	}

	w.Fatalf("namespace %s has no group", namespace)

	return nil
}
