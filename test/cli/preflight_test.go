package cli_test

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// fed runs the command line with a standard input.
func fed(w *testbed.World, content string, arguments ...string) (out, errOut string, code int) {
	w.Helper()

	stdin, err := os.Open(file(w, "stdin.yaml", content))
	if err != nil {
		w.Fatal(err)
	}

	before := os.Stdin
	os.Stdin = stdin

	defer func() {
		os.Stdin = before
		_ = stdin.Close()
	}()

	return run(w, arguments...)
}

// TestPreflightOfTheStandardInput holds that what is piped in is asked about, whatever it is.
func TestPreflightOfTheStandardInput(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Make(testbed.Account(ops, "writer"))

	for name, tc := range map[string]struct{ content, want string }{
		"a scope": {`apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: planned, namespace: ` + ops + `}
spec: {namespaceMembers: [` + member + `]}
`, "Service account " + ops + "/writer lacks permissions in 2 of 2 namespaces for NamespaceScope " + ops + "/planned"},
		"an object": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n", "create configmaps"},
		"a ClusterServiceVersion": {`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: op.v1}
spec: {displayName: op, install: {strategy: deployment, spec: {deployments: [], permissions: [
  {serviceAccountName: op, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}]}}}
`, "lacks permissions in 1 of 1 places to install it"},
	} {
		out, errOut, code := fed(w, tc.content, "preflight", "-f", "-", "-n", ops, "--service-account", ops+"/writer")
		if code != cli.ExitMissing || !strings.Contains(out, tc.want) {
			t.Errorf("%s: exit code %d, nothing of %q: %s%s", name, code, tc.want, out, errOut)
		}
	}
}

// TestPreflightNamesWhatItLeavesOut holds that nobody takes the answer about a scope for one about the whole file.
func TestPreflightNamesWhatItLeavesOut(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")
	w.Make(testbed.Account(ops, "writer"))

	path := file(w, "mixed.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: planned, namespace: `+ops+`}
---
apiVersion: v1
kind: Secret
metadata: {name: one}
`)

	out, errOut, code := run(w, "preflight", "-f", path, "--service-account", ops+"/writer")
	if code != cli.ExitMissing || strings.Contains(out, "secrets") || !strings.Contains(errOut, "asked about: Secret one;") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// TestPreflightSaysHowToNameAScope holds that errors about which scope is meant name the argument of this command, and no flags
// that others have.
func TestPreflightSaysHowToNameAScope(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	none, two := w.Namespace("none"), w.Namespace("two")

	for _, name := range []string{"a", "b"} {
		w.Make(&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: two, Name: name}})
	}

	for _, tc := range []struct{ arguments, want string }{
		{"-n " + none, "create it first, or give the files of one with -f"},
		{"-n " + two, "choose one of a, b; give ambit preflight NAME"},
		{"c -n " + two, "there is a, b; give ambit preflight NAME"},
		{"-n " + two + " --as nobody", "the other group: ambit preflight GROUP/NAME"},
	} {
		_, errOut, code := run(w, append([]string{"preflight"}, strings.Fields(tc.arguments)...)...)
		if code != cli.ExitFailed || !strings.Contains(errOut, tc.want) || strings.Contains(errOut, "--scope") {
			t.Errorf("%s: exit code %d, nothing of %q: %s", tc.arguments, code, tc.want, errOut)
		}
	}
}

// TestPreflightKnowsTheManagersAccount holds that a scope which names no account is asked about as the manager
// would write for it.
func TestPreflightKnowsTheManagersAccount(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, system := w.Namespace("ops"), w.Namespace("system")
	path := file(w, "scope.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: planned, namespace: `+ops+`}
`)

	_, errOut, code := run(w, "preflight", "-f", path, "--ambit-namespace", system)
	if code != cli.ExitFailed || !strings.Contains(errOut, "names no service account") ||
		!strings.Contains(errOut, "there is no Deployment "+system+"/ambit") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	labels := map[string]string{"name": "ambit"}
	none := int32(0)
	w.Make(testbed.Account(ops, "deputy"), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "ambit"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: "manager", Image: "example.com/ambit:1", Args: []string{"manager", "--default-service-account=deputy"},
				}},
			}},
		},
	})

	out, errOut, code := run(w, "preflight", "-f", path, "--ambit-namespace", system)
	if code != cli.ExitMissing || !strings.Contains(out, "Service account "+ops+"/deputy lacks permissions in 1 of 1 namespaces") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}
