package takeover_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// ibmsDefinition is like that of IBM's operator: it keeps what it does not know in a spec, and no conditions in a status.
const ibmsDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: namespacescopes.operator.ibm.com}
spec:
  group: operator.ibm.com
  scope: Namespaced
  names: {plural: namespacescopes, singular: namespacescope, kind: NamespaceScope, listKind: NamespaceScopeList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          x-kubernetes-preserve-unknown-fields: true
          properties:
            spec:
              type: object
              x-kubernetes-preserve-unknown-fields: true
              properties: {namespaceMembers: {type: array, items: {type: string}}}
            status:
              type: object
              properties: {validatedMembers: {type: array, items: {type: string}}}
`

// TestHelmNamesTheDefinitionOfIBMsOperator: Helm would leave it as it is, without a word. With the command that the chart names,
// it can be installed.
func TestHelmNamesTheDefinitionOfIBMsOperator(t *testing.T) {
	w := beds.Own(t, "cluster")

	path := filepath.Join(t.TempDir(), "definition.yaml")
	if err := os.WriteFile(path, []byte(ibmsDefinition), 0o600); err != nil {
		t.Fatal(err)
	}

	applied(w, path)

	chart := filepath.Join(embedded.Root(), "charts", "ambit")
	render := func(profile string) (string, error) {
		helm := exec.CommandContext(t.Context(), embedded.Program("tools/helm"), "template", "ambit", chart, "--dry-run=server",
			"--kube-version", "1.36", "--kubeconfig", w.Cluster.Kubeconfig, "--namespace", "elsewhere", "--set", "profile="+profile)
		home := t.TempDir() // What a user has set up for Helm must not matter here.
		helm.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)

		out, err := helm.CombinedOutput()

		return string(out), err
	}

	for _, profile := range []string{"cluster", "delegated"} {
		if out, err := render(profile); err == nil || !strings.Contains(out, "namespacescopes.operator.ibm.com is not Ambit's") ||
			!strings.Contains(out, "kubectl apply --server-side --force-conflicts -f crds.yaml") {
			t.Errorf("%s: the definition is not named: %v", profile, err)
		}
	}

	applied(w, filepath.Join(chart, "crds"))

	for _, profile := range []string{"cluster", "delegated", "namespaced"} {
		if out, err := render(profile); err != nil {
			t.Errorf("%s: %v\n%.1000s", profile, err, out)
		}
	}
}

func applied(w *testbed.World, path string) {
	w.Helper()

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "--server-side", "--force-conflicts", "-f", path); err != nil {
		w.Fatal(out, err)
	}
}
