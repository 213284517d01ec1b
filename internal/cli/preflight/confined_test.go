package preflight

import (
	"bytes"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// TestWhatAnAdministratorHasToSeeTo: each thing that is missing in the cluster as a whole has a line of its own.
func TestWhatAnAdministratorHasToSeeTo(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	o := &Options{}
	o.Out, o.Output = terminal.NewWriter(&out), output.Table

	err := o.sayBeyond(&clusterNeeds{
		missing: []string{"CustomResourceDefinition kettles.example.com (v1)"},
		operators: []operatorLack{{preflight.Account("team-a", "kettle"), []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
		}}},
	})

	want := `
Ambit serves single namespaces and makes nothing that has none. Missing, for whoever administers the cluster:
  CustomResourceDefinition kettles.example.com (v1)
  Service account team-a/kettle, in the cluster as a whole: list nodes
`
	if err != nil || out.String() != want {
		t.Errorf("it says (%v): %s", err, out.String())
	}
}
