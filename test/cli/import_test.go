package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// ibmCopies are what IBM's operator projects of a Role for an account.
func ibmCopies(ops, role, account, member string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	sum := sha256.Sum256([]byte(role + account + ops))
	head := metav1.ObjectMeta{
		Namespace: member, Name: role + "-" + hex.EncodeToString(sum[:7]),
		Labels: map[string]string{
			"namespace-scope-configmap": "namespace-scope-" + ops, "app.kubernetes.io/instance": "namespace-scope",
			"app.kubernetes.io/managed-by": "ibm-namespace-scope-operator", "app.kubernetes.io/name": "namespace-scope",
		},
	}

	return &rbacv1.Role{ObjectMeta: head, Rules: []rbacv1.PolicyRule{testbed.Rule("get secrets")}}, &rbacv1.RoleBinding{
		ObjectMeta: head, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: head.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ops, Name: account}},
	}
}

func TestTakeOverIsShownAndHappens(t *testing.T) {
	w := beds.Alone(t, "cluster")
	ops, member := w.Namespace("ops"), w.Namespace("member")

	// As IBM's operator left it, while no Ambit runs.
	if err := w.Manager.Kill(); err != nil {
		t.Fatal(err)
	}

	started := false

	t.Cleanup(func() {
		if !started {
			if err := w.Manager.Start(); err != nil {
				t.Error(err)
			}
		}
	})

	w.Operator(ops, "op", "get secrets")
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{member}})
	role, binding := ibmCopies(ops, "op-role", "op", member)
	stranger := role.DeepCopy()
	stranger.Name = "my-own"
	ibm := ibmsOperator(ops)
	w.Make(role, binding, stranger, ibm, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "namespace-scope"},
		Data:       map[string]string{"namespaces": member + "," + ops},
	})

	out, errOut, code := run(w, "import", "--take-over", "-n", ops, "--dry-run")
	for _, words := range []string{
		"1. Stop IBM's operator", "2. Ambit creates 2 Roles and RoleBindings",
		"3. Ambit adopts the watch list ConfigMap namespace-scope. It names the same namespaces",
		"4. A second after its own are there, Ambit removes 2 Roles and RoleBindings of IBM's operator",
		"not its work: Role " + member + "/my-own", "this was a dry run",
	} {
		if code != cli.ExitDone || !strings.Contains(out, words) {
			t.Errorf("exit code %d, nothing of %q: %s%s", code, words, out, errOut)
		}
	}

	// Kubernetes is done with the Deployment, too: it is stopped only as it was read.
	w.Running(ops)

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(ibm), ibm); err != nil || *ibm.Spec.Replicas != 1 {
		t.Errorf("the dry run stopped IBM's operator: %v", err)
	}

	// Nobody takes over as long as no Ambit runs, and that is said.
	began := time.Now()
	_, errOut, code = run(w, "import", "--take-over", "-n", ops, "--timeout", "1s")
	took := time.Since(began)

	if code != cli.ExitFailed || !strings.Contains(errOut, "2 objects of IBM's operator are still there; is Ambit running?") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	// So is what is left when somebody presses Ctrl-C.
	var stdout, stderr bytes.Buffer

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second+2*took)
	defer cancel()

	code = cli.Run(ctx, []string{"import", "--take-over", "-n", ops, "--kubeconfig", w.Cluster.Kubeconfig}, &stdout, &stderr)
	if code != cli.ExitFailed || !strings.Contains(stderr.String(), "interrupted; IBM's operator is stopped, and Ambit goes on") {
		t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
	}

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	started = true

	out, errOut, code = run(w, "import", "--take-over", "-n", ops)
	if code != cli.ExitDone || !strings.Contains(out, "Done: nothing is left of what IBM's operator projected") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}

	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(ibm), ibm); err != nil || *ibm.Spec.Replicas != 0 {
		t.Errorf("IBM's operator has %d replicas, %v", *ibm.Spec.Replicas, err)
	}

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil {
		t.Errorf("what is not IBM's stays: %v", err)
	}
}

func TestLegacyScopesAreConverted(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	path := file(w, "older.yaml", `apiVersion: namespacescope.ibm.com/v1alpha1
kind: NamespaceScope
metadata: {name: older, namespace: `+ops+`}
spec: {namespaceMembers: [`+member+`]}
`)

	out, errOut, code := run(w, "import", "-f", path, "--apply")
	if code != cli.ExitDone || !strings.Contains(out, "apiVersion: operator.ibm.com/v1") ||
		!strings.Contains(errOut, "NamespaceScope "+ops+"/older created") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "older"}}
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")
	w.May(ops, "op", member, "get secrets")

	_, errOut, code = run(w, "import", "-f", path, "--apply")
	if code != cli.ExitDone || !strings.Contains(errOut, "NamespaceScope "+ops+"/older is there already") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	if _, errOut, _ = run(w, "import", "-f", path); strings.Contains(errOut, "exists already") {
		t.Errorf("the same is there already: %s", errOut)
	}

	nss.Spec.NamespaceMembers = nil
	if err := w.Client.Update(t.Context(), nss); err != nil {
		t.Fatal(err)
	}

	_, errOut, code = run(w, "import", "-f", path, "--apply")
	if code != cli.ExitFailed || !strings.Contains(errOut, "exists already") || !strings.Contains(errOut, "nothing was created") {
		t.Errorf("exit code %d: %s", code, errOut)
	}

	// Printed, it is for kubectl, which would replace what is there.
	_, errOut, code = run(w, "import", "-f", path)
	if code != cli.ExitDone || !strings.Contains(errOut, ops+"/older exists already; compare it with what was printed") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestImportGoesOnWhereItEnded holds that an import that lost the API server after the first of its objects creates the rest when
// it is run again.
func TestImportGoesOnWhereItEnded(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")

	older := func(name string) string {
		return `---
apiVersion: namespacescope.ibm.com/v1alpha1
kind: NamespaceScope
metadata: {name: ` + name + `, namespace: ` + ops + `}
spec: {configmap-name: ` + name + `}
`
	}

	if out, errOut, code := run(w, "import", "-f", file(w, "first.yaml", older("one")), "--apply"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	_, errOut, code := run(w, "import", "-f", file(w, "both.yaml", older("one")+older("two")), "--apply")
	if code != cli.ExitDone || !strings.Contains(errOut, "/one is there already") || !strings.Contains(errOut, "/two created") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestGroupsOfLabelsAreConvertedToLabels holds that a group for labelled namespaces never becomes an instance for the whole
// cluster, however its labels are written.
func TestGroupsOfLabelsAreConvertedToLabels(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")

	for selector, want := range map[string]struct {
		code  int
		words string
	}{
		`{cool.io/prod: "true"}`:                {cli.ExitDone, "namespaceSelector:\n    cool.io/prod: \"true\"\n"},
		`{matchLabels: {cool.io/prod: "true"}}`: {cli.ExitDone, "namespaceSelector:\n    matchLabels:\n      cool.io/prod: \"true\"\n"},
		`{}`:                                    {cli.ExitFailed, "spec.selector of OperatorGroup group selects nothing: it is empty"},
	} {
		own := w.Namespace("own")

		path := file(w, own+".yaml", `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: `+own+`}
spec: {selector: `+selector+`}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: op.v1, namespace: `+own+`, annotations: {olm.operatorNamespace: restored-from}} # It is no copy of OLM's.
spec: {displayName: op, install: {strategy: deployment, spec: {deployments: [], permissions: [
  {serviceAccountName: op, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}]}}}
`)
		if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", path); err != nil {
			t.Fatal(out, err)
		}

		out, errOut, code := run(w, "import", "csv/op.v1", "-n", own)
		if code != want.code || !strings.Contains(out+errOut, want.words) || strings.Contains(errOut, "the whole cluster") {
			t.Errorf("%s: exit code %d, nothing of %q: %s%s", selector, code, want.words, out, errOut)
		}
	}
}

// TestImportTakesNoRightsFromANamesake holds that of an operator which is installed in two namespaces, what is imported for the
// second leaves what was imported for the first: templates have no namespace. Imported again, it keeps its name.
func TestImportTakesNoRightsFromANamesake(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	one, two := w.Namespace("one"), w.Namespace("two")
	version := one + ".v1" // Nobody else's.

	for _, where := range []string{"permissions", "clusterPermissions"} {
		name := version + "." + strings.ToLower(where)

		for _, own := range []string{one, two} {
			install(w, own, name, where, "")
		}

		first, errOut, code := run(w, "import", "csv/"+name, "-n", one, "--apply")
		if code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, errOut)
		}

		again, _, _ := run(w, "import", "csv/"+name, "-n", one)
		if again != first {
			t.Errorf("imported again, it is\n%s\nand was\n%s", again, first)
		}

		second, errOut, code := run(w, "import", "csv/"+name, "-n", two, "--apply")
		if code != cli.ExitDone || !strings.Contains(second, "name: "+two+"."+name) ||
			!strings.Contains(errOut, "is for something else") {
			t.Errorf("the second: exit code %d: %s%s", code, second, errOut)
		}
	}
}

// TestImportTakesNothingFromOthers holds that what is imported, printed and applied by hand leaves an instance of another
// template alone, and a template that is for others, too.
func TestImportTakesNothingFromOthers(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	own, other := w.Namespace("own"), w.Namespace("other")

	subject := func(namespace string) string { return "{kind: ServiceAccount, name: op, namespace: " + namespace + "}" }

	for what, there := range map[string]string{
		"instance": "kind: ScopeInstance\nspec: {scopeTemplateName: another, namespaces: [" + other + "]}",
		"shared": "kind: ScopeTemplate\nspec: {clusterRoles: [{generateName: a-, subjects: [" +
			subject(own) + ", " + subject(other) + "]}]}",
		"person": "kind: ScopeTemplate\nspec: {clusterRoles: [{generateName: a-, subjects: [" +
			subject(own) + "]}], bindingTemplate: {subjects: [{kind: User, name: jane}]}}",
	} {
		name := own + "." + what
		install(w, own, name, "permissions", `---
apiVersion: operators.coreos.com/v1alpha1
metadata: {name: `+name+`}
`+there)

		out, errOut, code := run(w, "import", "csv/"+name, "-n", own)
		if code != cli.ExitDone || strings.Contains(out, "name: "+name+"\n") || !strings.Contains(errOut, "is for something else") {
			t.Errorf("%s: exit code %d: %s%s", what, code, out, errOut)
		}
	}
}

// install has an operator in a namespace, for that namespace, with permissions that stand in a field; and what stands after it.
func install(w *testbed.World, own, name, where, after string) {
	w.Helper()

	path := file(w, name+".yaml", `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: `+own+`}
spec: {targetNamespaces: [`+own+`]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: `+name+`, namespace: `+own+`}
spec: {displayName: op, install: {strategy: deployment, spec: {deployments: [], `+where+`: [
  {serviceAccountName: op, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}]}}}
`+after)
	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", path); err != nil {
		w.Fatal(out, err)
	}
}

// TestPlanOfAScopeThatNobodyServes holds that it is said, whatever there would be to write.
func TestPlanOfAScopeThatNobodyServes(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")
	path := file(w, "scope.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: scope, namespace: `+ops+`}
spec: {serviceAccountName: nobody}
`)

	out, errOut, code := run(w, "plan", "-f", path)
	if code != cli.ExitMissing || !strings.Contains(out, "nobody would serve it: service account "+ops+"/nobody does not exist") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// TestPlanGrantsWhatIsMissing holds that the YAML that plan prints, once applied, is enough.
func TestPlanGrantsWhatIsMissing(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets", "patch deployments")
	w.Make(testbed.Account(ops, "delegate"))
	w.Grant(member, "some", ops, "delegate", "get secrets", "create roles")

	path := file(w, "scope.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: scope, namespace: `+ops+`}
spec: {namespaceMembers: [`+member+`], serviceAccountName: delegate}
`)

	out, errOut, code := run(w, "plan", "-f", path)
	if code != cli.ExitMissing || !strings.Contains(out, "refused: create") || !strings.Contains(out, "This grants exactly them") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}

	_, yaml, _ := strings.Cut(out, "This grants exactly them:\n")
	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", file(w, "grant.yaml", yaml)); err != nil {
		t.Fatal(out, err)
	}

	w.Eventually("nothing is refused any more", func() error {
		if out, _, code := run(w, "plan", "-f", path); code != cli.ExitDone {
			return errors.New(out)
		}

		return nil
	})

	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", path); err != nil {
		t.Fatal(out, err)
	}

	w.Reports(&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}}, metav1.ConditionTrue,
		"Reconciled")
}
