package cli_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestPreflightSaysThatTheAccountDoesNotExist holds that a list of what an account lacks does not hide that there is none.
func TestPreflightSaysThatTheAccountDoesNotExist(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")
	w.Operator(ops, "op", "get secrets")
	w.Scope(ops, operatorv1.NamespaceScopeSpec{})

	role := file(w, "role.yaml", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: "+ops+"}}")

	for what, arguments := range map[string][]string{
		"a scope": {"preflight", "-n", ops, "--service-account"}, "files": {"preflight", "-f", role, "--service-account"},
	} {
		for _, form := range []string{"table", "yaml", "json"} {
			out, errOut, code := run(w, append(arguments, ops+"/nobody", "-o", form)...)
			if code != cli.ExitMissing || !strings.Contains(errOut, "service account "+ops+"/nobody does not exist") ||
				!strings.Contains(out, "patch") {
				t.Errorf("%s, -o %s: exit code %d: %s%s", what, form, code, out, errOut)
			}
		}

		if _, errOut, _ := run(w, append(arguments, ops+"/op")...); strings.Contains(errOut, "does not exist") {
			t.Errorf("%s: it exists: %s", what, errOut)
		}
	}
}

// TestPreflightSelectsWhatTheManagerSelects holds that no selector picks Ambit's own namespace, there as here.
func TestPreflightSelectsWhatTheManagerSelects(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	path := file(w, "scope.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: scope, namespace: `+ops+`}
spec:
  serviceAccountName: op
  namespaceSelector:
    matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [`+embedded.Namespace+`, `+member+`]}]
`)

	for _, verb := range []string{"preflight", "plan"} {
		out, errOut, code := run(w, verb, "-f", path)
		if code != cli.ExitMissing || !strings.Contains(out, member) || strings.Contains(out, embedded.Namespace) {
			t.Errorf("%s: exit code %d: %s%s", verb, code, out, errOut)
		}
	}
}

// TestPlanRefusesAmbitsOwnAccountAsTheManagerDoes holds that a manual scope which names Ambit's own account is served by nobody,
// and that plan says so in the words of status.
func TestPlanRefusesAmbitsOwnAccountAsTheManagerDoes(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: "ambit"}}
	w.Change(d, func() {})

	own := d.Spec.Template.Spec.ServiceAccountName
	if own == "" {
		t.Fatal("Ambit runs as no account of its own")
	}

	path := file(w, "scope.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: own-account, namespace: `+embedded.Namespace+`}
spec: {manualManagement: true, serviceAccountName: `+own+`, configmapName: own-account}
`)

	const words = "is Ambit's own, which may do more; name another one"

	out, errOut, code := run(w, "plan", "-f", path)
	if code != cli.ExitMissing || !strings.Contains(out, words) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", path); err != nil {
		t.Fatal(out, err)
	}

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: "own-account"}}
	w.Reports(nss, metav1.ConditionFalse, "AuthorizationRequired")

	if ready := meta.FindStatusCondition(nss.Status.Conditions, "Ready"); ready == nil || !strings.Contains(ready.Message, words) {
		t.Errorf("status says %+v", ready)
	}

	w.Remove(nss)
}

// TestPlanMergesListsAsKubectlDoes holds that what somebody else added to a list of a built-in kind stays in the plan, as it
// would after kubectl apply: a container beside that of the file takes nothing away.
func TestPlanMergesListsAsKubectlDoes(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")
	w.Make(testbed.Account(ops, "op"), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "r"}})

	manifest := func(image string) string {
		return file(w, "deployment.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: op, namespace: `+ops+`}
spec:
  selector: {matchLabels: {name: op}}
  template:
    metadata: {labels: {name: op, intent: projected}}
    spec: {serviceAccountName: op, containers: [{name: operator, image: "`+image+`"}]}
`)
	}

	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", manifest("registry.example.com/operator:1")); err != nil {
		t.Fatal(out, err)
	}

	patch := `{"spec":{"template":{"spec":{"containers":[{"name":"injected","image":"registry.example.com/side:1"}]}}}}`
	if out, err := w.Cluster.Kubectl(t.Context(), "patch", "deployment", "op", "-n", ops, "-p", patch); err != nil {
		t.Fatal(out, err)
	}

	path := manifest("registry.example.com/operator:1")

	// While it rolls out, others change it between two looks.
	w.Eventually("what is there is what kubectl apply leaves", func() error {
		if out, errOut, code := run(w, "plan", "-f", path); code != cli.ExitDone || !strings.Contains(out, "would be unchanged") {
			return errors.New(out + errOut)
		}

		return nil
	})
}
