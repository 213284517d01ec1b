package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/cli/served"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const clusterWide = "ClusterWide"

// everywhere binds a ClusterRole to subjects in the whole cluster.
func everywhere(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// conditions are those of any object, by type.
func conditions(w *testbed.World, obj client.Object) (map[string]map[string]any, error) {
	kinds, _, err := w.Client.Scheme().ObjectKinds(obj)
	if err != nil {
		return nil, err
	}

	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kinds[0])

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), u); err != nil {
		return nil, err
	}

	out := map[string]map[string]any{}
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")

	for _, c := range all {
		if one, _ := c.(map[string]any); one["type"] != nil {
			out[fmt.Sprint(one["type"])] = one
		}
	}

	return out, nil
}

// isWide waits until the condition of an object is True and says all of these words; absent where there are none.
func isWide(w *testbed.World, obj client.Object, words ...string) {
	w.Helper()

	began := time.Now()

	w.Eventually(fmt.Sprintf("%s of %s says %q", clusterWide, obj.GetName(), words), func() error {
		all, err := conditions(w, obj)
		if err != nil {
			return err
		}

		c := all[clusterWide]

		switch {
		case c == nil && len(words) == 0:
			return nil
		case c == nil || len(words) == 0 || c["status"] != "True" || c["reason"] != "BoundInCluster":
			return fmt.Errorf("it is %v", c)
		}

		for _, word := range words {
			if !strings.Contains(fmt.Sprint(c["message"]), word) {
				return fmt.Errorf("nothing of %q in %v", word, c["message"])
			}
		}

		return nil
	})

	w.Logf("%s %q after %s", obj.GetName(), words, time.Since(began).Round(10*time.Millisecond))
}

// TestAccountsThatHoldTheWholeCluster: a stock install with a ClusterRoleBinding is not narrow, whatever its scope says. Status
// says so while it is true, and so does each view.
func TestAccountsThatHoldTheWholeCluster(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get configmaps")
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}})
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")
	isWide(w, nss)

	// Whoever may make such names may try to have them read as something else.
	hostile := "wide-" + ops + "\u202e\x1b[31m"
	role := testbed.ClusterRole("wide-"+ops, "get,list,watch secrets", "get nodes", "list,watch namespaces")
	b := everywhere(hostile, role.Name, account(ops, "op"))
	w.Make(role, b)

	says := []string{
		"ClusterRoleBinding ", `wide-` + ops + `\u202e\u001b[31m`, "service account " + ops + "/op", "get, list, watch secrets",
		"to narrow it: ambit narrow --from " + ops + "/op",
	}
	isWide(w, nss, says...)

	for _, line := range [][]string{
		{"tree", "-n", ops}, {"matrix", "-n", ops}, {"operators", "-n", m}, {"matrix", "-n", ops, "-o", "html"},
		{"matrix", "-n", ops, "-o", "svg"},
	} {
		out, errOut, code := run(w, line...)
		if code != cli.ExitDone || strings.ContainsAny(out, "\u202e\x1b") {
			t.Errorf("%v: exit code %d: %s%q", line, code, errOut, out)
		}

		for _, words := range append(slices.Clone(says[2:]), "(cluster-wide)") {
			if !strings.Contains(out, words) {
				t.Errorf("%v: nothing of %q: %s", line, words, out)
			}
		}
	}

	inPrograms(w, ops, m, hostile)

	scope := file(w, "scope.yaml", fmt.Sprintf(`apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {namespace: %s, name: %s}
spec: {namespaceMembers: [%s, %s]}
`, ops, nss.Name, m, w.Namespace("other")))

	if out, errOut, code := run(w, "plan", "-f", scope); code != cli.ExitDone || !strings.Contains(out, says[4]) {
		t.Errorf("plan: exit code %d: %s%s", code, errOut, out)
	}

	// What narrowing leaves in the whole cluster is about things that have no namespace, custom ones too.
	w.Change(role, func() {
		role.Rules = []rbacv1.PolicyRule{
			testbed.Rule("get nodes"), testbed.Rule("list,watch namespaces"),
			{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"scopeinstances", "scopeinstances/status"},
				Verbs: []string{"get"}},
			{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		}
	})
	isWide(w, nss)

	w.Change(role, func() { role.Rules = []rbacv1.PolicyRule{testbed.Rule("* *")} })
	isWide(w, nss, "secrets")

	// Accounts are meant by their groups, too.
	w.Change(b, func() {
		b.Subjects = []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + ops}}
	})
	isWide(w, nss, "by the group system:serviceaccounts:"+ops)

	w.Remove(b)
	isWide(w, nss)
}

// inPrograms holds what is for programs.
func inPrograms(w *testbed.World, ops, m, binding string) {
	w.Helper()

	var (
		grid   served.MatrixData
		inside served.OperatorsData
		trees  served.TreeData
	)

	for into, line := range map[any][]string{
		&grid: {"matrix", "-n", ops}, &inside: {"operators", "-n", m}, &trees: {"tree", "-n", ops},
	} {
		out, errOut, _ := run(w, append(line, "-o", "json")...)
		if err := json.Unmarshal([]byte(out), into); err != nil {
			w.Fatal(err, errOut)
		}
	}

	if len(grid.ClusterWide) != 1 || grid.ClusterWide[0].Binding != binding || !grid.ClusterWide[0].Sensitive {
		w.Errorf("matrix: %+v", grid.ClusterWide)
	}

	at := slices.IndexFunc(inside.Operators, func(o served.Inside) bool { return o.Namespace == ops })
	if at < 0 || len(inside.Operators[at].ClusterWide) != 1 {
		w.Errorf("operators: %+v", inside.Operators)
	}

	if len(trees.Scopes) != 1 || len(trees.Scopes[0].ClusterWide) != 1 {
		w.Errorf("tree: %+v", trees.Scopes)
	}
}

// TestInstancesThatHoldTheWholeCluster holds the same of ScopeInstances, for accounts, users and groups. One that binds in the
// whole cluster says so itself.
func TestInstancesThatHoldTheWholeCluster(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Make(testbed.Account(ops, "op"), &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: ops},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
			GenerateName: ops + "-", Rules: []rbacv1.PolicyRule{testbed.Rule("get configmaps")},
			Subjects: []operatorsv1alpha1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "op"}, {Kind: "Group", Name: "people-" + ops},
			},
		}}},
	})

	named := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "named-" + ops},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: ops, Namespaces: []string{m}},
	}
	wide := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "wide-" + ops}, Spec: operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: ops},
	}
	role := testbed.ClusterRole("pods-"+ops, "create pods/exec")
	byAccount := everywhere("account-"+ops, role.Name, account(ops, "op"))
	byGroup := everywhere("group-"+ops, role.Name, rbacv1.Subject{
		Kind: "Group", APIGroup: rbacv1.GroupName, Name: "people-" + ops,
	})

	w.Make(named)
	w.Eventually("it is scoped", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(named), named); err != nil {
			return err
		}

		if !meta.IsStatusConditionTrue(named.Status.Conditions, "Scoped") {
			return fmt.Errorf("%+v", named.Status)
		}

		return nil
	})
	isWide(w, named)

	w.Make(role, byAccount)
	isWide(w, named, byAccount.Name, ops+"/op")
	w.Remove(byAccount)
	isWide(w, named)
	w.Make(byGroup)
	isWide(w, named, byGroup.Name, "group people-"+ops, "bind them in namespaces instead")
	w.Remove(byGroup)
	isWide(w, named)

	// What one instance binds everywhere is not limited by another.
	w.Make(wide)
	isWide(w, named, "get configmaps")
	isWide(w, wide)

	out, errOut, code := run(w, "tree", named.Name)
	if code != cli.ExitDone || !strings.Contains(out, "(cluster-wide)") {
		t.Errorf("exit code %d: %s%s", code, errOut, out)
	}
}

// TestInstallsThatHoldTheWholeCluster holds it of ClusterServiceVersions: by somebody's binding, and by their own
// clusterPermissions. RulesEffective names what means nothing in their targets.
func TestInstallsThatHoldTheWholeCluster(t *testing.T) {
	w := &installing{World: beds.Begin(t, "cluster", "--restart-interval=1s")}
	w.ops, w.a = w.Namespace("ops"), w.Namespace("a")

	group := strings.Replace(w.group(), ", serviceAccountName: deployer", "", 1)
	w.apply(group + "---\n" + w.csv("op.v1", ""))

	csv := objectOfCSV(w.ops, "op.v1")
	w.succeeds(csv)
	isWide(w.World, csv)

	role := testbed.ClusterRole("wide-"+w.ops, "get secrets")
	b := everywhere("wide-"+w.ops, role.Name, account(w.ops, "op"))
	w.Make(role, b)
	isWide(w.World, csv, b.Name, "get secrets", "ambit narrow --from "+w.ops+"/op")
	w.succeeds(csv)

	out, errOut, code := run(w.World, "tree", "-n", w.ops)
	if code != cli.ExitDone || !strings.Contains(out, "get secrets") || !strings.Contains(out, "(cluster-wide)") {
		t.Errorf("exit code %d: %s%s", code, errOut, out)
	}

	w.Remove(b)
	isWide(w.World, csv)

	text := strings.Replace(w.csv("op.v1", ""), "resources: [nodes]", "resources: [nodes, pods]", 1)
	w.apply(strings.Replace(text, "resources: [configmaps]", "resources: [configmaps, persistentvolumes]", 1))
	isWide(w.World, csv, "get pods", "move its clusterPermissions to permissions")

	all, err := conditions(w.World, csv)
	if err != nil {
		t.Fatal(err)
	}

	if c := all["RulesEffective"]; c == nil || c["status"] != "False" ||
		!strings.Contains(fmt.Sprint(c["message"]), "persistentvolumes") {
		t.Errorf("RulesEffective is %v", c)
	}

	// A group of all namespaces promises nothing that the whole cluster would break.
	w.apply(strings.Replace(group, "spec: {targetNamespaces: ["+w.a+"]}", "spec: {targetNamespaces: []}", 1) + "---\n" +
		strings.Replace(text, "{type: SingleNamespace, supported: true}", "{type: AllNamespaces, supported: true}", 1))
	isWide(w.World, csv)
}

func objectOfCSV(namespace, name string) *unstructured.Unstructured {
	csv := &unstructured.Unstructured{}
	csv.SetAPIVersion("operators.coreos.com/v1alpha1")
	csv.SetKind("ClusterServiceVersion")
	csv.SetNamespace(namespace)
	csv.SetName(name)

	return csv
}

func (w *installing) apply(content string) {
	w.Helper()

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", file(w.World, "applied.yaml", content)); err != nil {
		w.Fatal(out, err)
	}
}

func (w *installing) succeeds(csv *unstructured.Unstructured) {
	w.Helper()
	w.Eventually("it succeeds", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
			return err
		}

		if phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase"); phase != "Succeeded" {
			return fmt.Errorf("%v", csv.Object["status"])
		}

		return nil
	})
}

// TestWhatHoldsTheWholeClusterCostsNothing: in the profile delegated, too, the condition comes and goes by events, and nobody is
// asked for anything while nothing changes. A plan says how to grant what is missing, in the words of status.
func TestWhatHoldsTheWholeClusterCostsNothing(t *testing.T) {
	w := beds.Alone(t, "delegated")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get configmaps")
	// A restart that is due, as the list has changed, would be a request.
	if err := w.Client.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "op"}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ambit.dev/restart":"disabled"}}}`))); err != nil {
		t.Fatal(err)
	}

	w.Delegate(ops, []string{"get configmaps"})

	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}, ServiceAccountName: "delegate"})
	w.Reports(nss, metav1.ConditionFalse, "AuthorizationRequired")

	command := "ambit authorize " + m + " --to " + ops

	if text := fmt.Sprint(nss.Status.FailedMembers); !strings.Contains(text, command) {
		t.Errorf("status names no command: %s", text)
	}

	for _, spec := range []string{"serviceAccountName: delegate, ", ""} {
		out, errOut, code := run(w, "plan", "-f", file(w, "scope.yaml", fmt.Sprintf(`apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {namespace: %s, name: %s}
spec: {%snamespaceMembers: [%s]}
`, ops, nss.Name, spec, m)))
		if code != cli.ExitMissing || !strings.Contains(out, command) {
			t.Errorf("exit code %d, and no %q: %s%s", code, command, out, errOut)
		}
	}

	w.Grant(m, "in-member", ops, "delegate", append(testbed.InMember(), "get configmaps")...)
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	role := testbed.ClusterRole("wide-"+ops, "get secrets", "get unheardof")
	b := everywhere(role.Name, role.Name, account(ops, "op"))
	w.Make(role, b)
	isWide(w, nss, "get secrets")

	w.Rest(time.Now())

	since := time.Now()
	if asked := w.Rest(since); len(asked) > 0 {
		t.Errorf("nothing changed, and it asked for %v", asked)
	}

	w.Remove(b)
	isWide(w, nss)

	// Every account of the cluster is an account of the scope.
	b = everywhere("wide-for-all-"+ops, role.Name, rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName,
		Name: "system:authenticated"})
	w.Make(b)
	isWide(w, nss, "by the group system:authenticated", "bind only who needs it")
	w.Remove(b)
	isWide(w, nss)
}
