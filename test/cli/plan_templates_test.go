package cli_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// TestDeletionOfTheLastTemplate holds that a plan says what goes with the last template and instance of a cluster: no scope is
// left then whose reconciliation would say it.
func TestDeletionOfTheLastTemplate(t *testing.T) {
	w := beds.Alone(t, "cluster")
	m := w.Namespace("m")
	content := fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ScopeTemplate
metadata: {name: %[1]s}
spec:
  clusterRoles:
  - generateName: %[1]s-
    rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
    subjects: [{kind: User, name: jane}]
---
apiVersion: operators.coreos.com/v1alpha1
kind: ScopeInstance
metadata: {name: %[1]s}
spec: {scopeTemplateName: %[1]s, namespaces: [%[1]s]}
`, m)

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", file(w, "applied.yaml", content)); err != nil {
		t.Fatal(out, err)
	}

	instance := &operatorsv1alpha1.ScopeInstance{}
	w.Eventually("it is bound", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKey{Name: m}, instance); err != nil {
			return err
		}

		if instance.Status.BoundNamespaces != 1 {
			return fmt.Errorf("%+v", instance.Status)
		}

		return nil
	})

	if d := planned(w, cli.ExitDone, content, "--delete"); counted(d, plan.Delete) != 2 {
		t.Errorf("a ClusterRole and a RoleBinding go: %+v", d.Objects)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), "delete", "-f", file(w, "applied.yaml", content)); err != nil {
		t.Fatal(out, err)
	}
}
