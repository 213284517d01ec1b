package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

const checked = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
`

// TestNarrowCheckOfARoleThatNobodyKnows holds that a pipeline stops where a new version binds a role that is neither in the files
// nor known, in each form of the answer: the role may give anything. A binding that the old version had, too, asks for nothing.
func TestNarrowCheckOfARoleThatNobodyKnows(t *testing.T) {
	t.Setenv("KUBECONFIG", "")

	file := filesFor(t)

	old := file("old.yaml", checked)
	_, binding, _ := strings.Cut(checked, "---\n")
	toAdmin := strings.NewReplacer("name: op}\nroleRef", "name: all}\nroleRef", "ClusterRole, name: op", "ClusterRole, name: admin")
	young := file("new.yaml", checked+"---\n"+toAdmin.Replace(binding))

	for name, tc := range map[string]struct {
		before, form string
		code         int
		says         func(text string) bool
	}{
		"table": {old, "table", cli.ExitMissing, func(text string) bool {
			return strings.Contains(text, "ClusterRoleBinding all") && strings.Contains(text, "ClusterRole admin")
		}},
		"json": {old, "json", cli.ExitMissing, func(text string) bool {
			var out struct {
				More []struct {
					Unknown bool `json:"unknown"`
				} `json:"more"`
			}

			return json.Unmarshal([]byte(text), &out) == nil && len(out.More) == 1 && out.More[0].Unknown
		}},
		"sarif": {old, "sarif", cli.ExitMissing, func(text string) bool {
			return strings.Count(text, `"level": "error"`) == 1 && strings.Contains(text, "ClusterRoleBinding all")
		}},
		"as before": {young, "table", cli.ExitDone, func(text string) bool {
			return strings.Contains(text, "The new version asks for nothing more.")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer

			code := cli.Run(t.Context(), []string{"narrow", "--offline", "--check", tc.before, "-f", young, "-o", tc.form}, &out, &errOut)
			if code != tc.code || !tc.says(out.String()) {
				t.Errorf("exit %d, want %d:\n%s\n%s", code, tc.code, out.String(), errOut.String())
			}
		})
	}
}

// filesFor returns what writes files of a test into a folder of its own.
func filesFor(t *testing.T) func(name, text string) string {
	t.Helper()

	folder := t.TempDir()

	return func(name, text string) string {
		t.Helper()

		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		return path
	}
}
