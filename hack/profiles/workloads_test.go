package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// TestWorkloadsAreGranted holds that the manifests, which are written by hand, have the rules for every kind of workload: whoever
// may not watch one waits for its list for ever.
func TestWorkloadsAreGranted(t *testing.T) {
	t.Parallel()

	watched := []string{"list", "watch"}
	for file, verbs := range map[string]struct{ all, restarted []string }{
		"base/clusterrole.yaml":        {all: watched},
		"namespaced/role.yaml":         {all: watched, restarted: []string{"patch"}},
		"direct/clusterrole.yaml":      {restarted: []string{"patch"}},
		"impersonate/clusterrole.yaml": {restarted: []string{onBehalf + "patch"}},
	} {
		raw, err := os.ReadFile(filepath.Join("../../config/rbac", file))
		if err != nil {
			t.Fatal(err)
		}

		var role rbacv1.ClusterRole // A Role has the same rules.
		if err := yaml.Unmarshal(raw, &role); err != nil {
			t.Fatal(err)
		}

		for i := range facts.WorkloadTypes {
			of := &facts.WorkloadTypes[i]

			wanted := verbs.all
			if of.Restart == facts.ByTemplate {
				wanted = append(append([]string{}, wanted...), verbs.restarted...)
			}

			if missing := authority.Missing(role.Rules, []rbacv1.PolicyRule{{
				APIGroups: []string{of.Resource.Group}, Resources: []string{of.Resource.Resource}, Verbs: wanted,
			}}); missing != nil {
				t.Errorf("config/rbac/%s lacks %v for %ss", file, missing, of.Kind)
			}
		}
	}
}

// TestTheScriptReadsAllWorkloads holds that the shell script, which authorizes as "ambit authorize" does, looks at every kind.
func TestTheScriptReadsAllWorkloads(t *testing.T) {
	t.Parallel()

	script, err := os.ReadFile("../../scripts/authorize-namespace.sh")
	if err != nil {
		t.Fatal(err)
	}

	for i := range facts.WorkloadTypes {
		of := facts.WorkloadTypes[i].Resource.Resource
		if r := facts.WorkloadTypes[i].Resource; r.Group != "" {
			of = strings.Join([]string{r.Resource, r.Version, r.Group}, ".")
		}

		if !strings.Contains(string(script), of) {
			t.Errorf("the script does not read %s", of)
		}
	}
}
