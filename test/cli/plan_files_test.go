package cli_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestFilesOfAnotherNamespaceThanGiven: kubectl refuses them, so that nobody writes into a namespace that they did not mean.
func TestFilesOfAnotherNamespaceThanGiven(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, other := w.Namespace("ops"), w.Namespace("other")

	content := scopeOf(ops, other, "  serviceAccountName: deployer\n")
	legacy := objectOf("namespacescope.ibm.com/v1alpha1", "NamespaceScope", ops, "scope") + "spec: {}\n"

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-n", other, "-f", file(w, "scope.yaml", content)); err == nil {
		t.Fatalf("kubectl applies it, so there is nothing to refuse: %s", out)
	}

	want := "NamespaceScope " + ops + "/scope is not in namespace " + other + ", which -n names; leave out -n, or give -n " + ops

	for command, content := range map[string]string{"plan": content, "preflight": content, "import": legacy} {
		path := file(w, command+".yaml", content)

		out, errOut, code := run(w, command, "-n", other, "-f", path)
		if code != cli.ExitFailed || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d: %s%s", command, code, out, errOut)
		}

		for _, given := range [][]string{nil, {"-n", ops}} {
			if out, errOut, code := run(w, append([]string{command, "-f", path}, given...)...); strings.Contains(errOut, "-n names") {
				t.Errorf("%s with %v: exit code %d: %s%s", command, given, code, out, errOut)
			}
		}
	}

	// As with kubectl, a namespace means nothing to what has none.
	path := file(w, "role.yaml", objectOf("rbac.authorization.k8s.io/v1", "ClusterRole", ops, "of-"+ops))

	out, errOut, _ := run(w, "plan", "-n", other, "-f", path)
	if !strings.Contains(out, "ClusterRole of-"+ops+" would be created.") {
		t.Errorf("a ClusterRole: %s%s", out, errOut)
	}
}

// TestPlanOfANamespaceIsNotAboutOthers: what was refused to a scope before is no answer to a file with a Namespace, unless it is
// about that. Other tests plan for all scopes that are there, so it has a cluster of its own.
func TestPlanOfANamespaceIsNotAboutOthers(t *testing.T) {
	w := beds.Own(t, "cluster", "--restart-interval=1s")
	ops, denied, awaited := w.Namespace("ops"), w.Namespace("denied"), "awaited-"+w.Namespace("suffix")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets"}, ops)
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{
		ServiceAccountName: "delegate", NamespaceMembers: []string{denied, awaited},
	}), metav1.ConditionFalse, "MembersFailed")

	d := planned(w, cli.ExitDone, objectOf("v1", "Namespace", "", "fresh-"+ops))
	if d.Refused {
		t.Error("what is refused elsewhere is taken for the file's")
	}

	for _, name := range []string{denied, awaited, ops} {
		planned(w, cli.ExitMissing, objectOf("v1", "Namespace", "", name))
	}

	// With anything else, it may be about that.
	planned(w, cli.ExitMissing, objectOf("v1", "Namespace", "", "fresh-"+ops)+"---\n"+objectOf("v1", "ServiceAccount", ops, "more"))
}
