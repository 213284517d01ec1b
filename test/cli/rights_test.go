package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// as runs the command line as somebody with fewer rights.
func as(w *testbed.World, user string, arguments ...string) (out, errOut string, code int) {
	w.Helper()

	return run(w, append(arguments, "--as", user)...)
}

// binding gives a user a ClusterRole.
func binding(user, clusterRole string) (rbacv1.RoleRef, []rbacv1.Subject) {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		[]rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
}

// lists waits until somebody may list something in a namespace, or everywhere.
func lists(w *testbed.World, user, namespace string, list client.ObjectList) {
	w.Helper()
	w.Eventually(user+" may look at "+namespace, func() error {
		return w.As(user).List(w.Context(), list, client.InNamespace(namespace))
	})
}

// TestWhoMayReadLittleSeesScopes holds that members that are served are not called failed, and that scopes and operators are not
// called absent, by what the caller may not read.
func TestWhoMayReadLittleSeesScopes(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get secrets")
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}})
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	viewer, reader, wide := "viewer-"+ops, "reader-"+ops, "wide-"+ops

	// The viewer may see what is in the scope's namespace, but for roles; the reader those, too. The last sees all namespaces as
	// the viewer does this one.
	for _, user := range []string{viewer, reader} {
		ref, subjects := binding(user, "view")
		w.Make(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: user}, RoleRef: ref, Subjects: subjects})
		lists(w, user, ops, &operatorv1.NamespaceScopeList{})
	}

	roles := testbed.Role(ops, "reads-roles", "list roles", "list rolebindings")
	_, subjects := binding(reader, "")
	w.Make(roles, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "reads-roles"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reads-roles"},
	})
	lists(w, reader, ops, &rbacv1.RoleList{})

	ref, subjects := binding(wide, "view")
	w.Make(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: wide}, RoleRef: ref, Subjects: subjects})
	lists(w, wide, "", &operatorv1.NamespaceScopeList{})

	for name, tc := range map[string]struct {
		user string
		line []string
		want []string
	}{
		"a scope whose roles are not read":    {viewer, []string{"tree", "scope", "-n", ops}, []string{ops + "/scope", "? NotRead", m}},
		"members that are not read":           {reader, []string{"tree", "scope", "-n", ops}, []string{ops + "/op", "? NotRead", m}},
		"a matrix of them":                    {viewer, []string{"matrix", "-n", ops}, []string{ops + "/op", "? unknown"}},
		"who may serve it":                    {wide, []string{"operators", "-n", m}, []string{ops + "/op", "unknown: NotRead"}},
		"nothing failed, as far as they know": {reader, []string{"matrix", "-n", ops, "--failed"}, []string{"no operator to show"}},
	} {
		out, errOut, code := as(w, tc.user, tc.line...)
		if code != cli.ExitDone {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}

		for _, words := range tc.want {
			if !strings.Contains(out, words) {
				t.Errorf("%s: nothing of %q: %s", name, words, out)
			}
		}

		// Who sees all namespaces sees what other tests install for all of them, too.
		if tc.user == wide {
			out = linesWith(out, ops)
		}

		for _, words := range []string{"✗", "missing", "AuthorizationRequired", "No operator", "failed:"} {
			if strings.Contains(out, words) {
				t.Errorf("%s: %q, but it is served: %s", name, words, out)
			}
		}
	}
}

// linesWith are the lines of a text that have a word in them.
func linesWith(text, word string) string {
	var out strings.Builder

	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			out.WriteString(line)
		}
	}

	return out.String()
}

// templateFor makes a ScopeTemplate, called like an operator namespace, by which its account op may read Secrets.
func templateFor(w *testbed.World, ops string) {
	w.Helper()
	w.Make(&operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: ops},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
			GenerateName: ops + "-",
			Rules:        []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
			Subjects:     []operatorsv1alpha1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "op"}},
		}}},
	})
}

// scopedBy makes a ScopeInstance of a template in some namespaces, and waits until it is scoped.
func scopedBy(w *testbed.World, template, name string, namespaces ...string) {
	w.Helper()

	instance := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: template, Namespaces: namespaces},
	}
	w.Make(instance)
	w.Eventually(name+" is scoped", func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(instance), instance)
		if err == nil && !meta.IsStatusConditionTrue(instance.Status.Conditions, "Scoped") {
			return fmt.Errorf("%+v", instance.Status)
		}

		return err
	})
}

// TestWhoMayReadLittleSeesInstances holds the same of ScopeInstances, in the namespaces that they name and in the whole cluster.
func TestWhoMayReadLittleSeesInstances(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Make(testbed.Account(ops, "op"))

	named, everywhere := "named-"+ops, "everywhere-"+ops
	templateFor(w, ops)

	for name, namespaces := range map[string][]string{named: {m}, everywhere: nil} {
		scopedBy(w, ops, name, namespaces...)
	}

	users := map[string][]string{
		"few": nil, "more": {"list namespaces", "list clusterroles"},
		"most": {"list namespaces", "list clusterroles", "list clusterrolebindings"},
	}
	// What is in the whole cluster has names that nobody knows who may not list it.
	plans := map[string]string{
		"few":  "because you may not list clusterrolebindings, clusterroles in the whole cluster",
		"more": "because you may not list clusterrolebindings in the whole cluster",
		"most": "whether these are served is unknown, because you may not read their roles and rolebindings: " + m,
	}

	for user, rules := range users {
		role := testbed.ClusterRole(user+"-"+ops, rules...)
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{"operators.coreos.com"}, Resources: []string{"scopetemplates", "scopeinstances"},
			Verbs: []string{"get", "list", "patch"},
		})
		ref, subjects := binding(role.Name, role.Name)
		w.Make(role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: ref, Subjects: subjects})
		lists(w, role.Name, "", &operatorsv1alpha1.ScopeInstanceList{})

		planned := file(w, "planned.yaml", `apiVersion: operators.coreos.com/v1alpha1
kind: ScopeInstance
metadata: {name: `+named+`, labels: {a: b}}
spec: {scopeTemplateName: `+ops+`, namespaces: [`+m+`]}
`)

		for name, tc := range map[string]struct {
			line []string
			want string
		}{
			"a tree":                      {[]string{"tree", named}, m + "  ? NotRead"},
			"a tree of the whole cluster": {[]string{"tree", everywhere}, "the whole cluster  ? NotRead"},
			"a matrix":                    {[]string{"matrix", "--operator", ops + "/op"}, "? unknown"},
			"who serves it":               {[]string{"operators", "-n", m}, "unknown: NotRead"},
			"a plan": {
				[]string{"plan", "-f", planned}, plans[user],
			},
		} {
			out, errOut, code := as(w, role.Name, tc.line...)

			want := cli.ExitDone
			if user != "most" && tc.line[0] == "plan" {
				want, out = cli.ExitFailed, errOut
			}

			if user == "most" && tc.line[0] == "tree" && tc.line[1] == everywhere {
				continue // There is nothing that this user may not read.
			}

			if code != want || !strings.Contains(out, tc.want) {
				t.Errorf("%s: %s: exit code %d, nothing of %q: %s%s", user, name, code, tc.want, out, errOut)
			}

			for _, words := range []string{"✗", "missing", "AuthorizationRequired", "fails:"} {
				if strings.Contains(out, words) {
					t.Errorf("%s: %s: %q, but it is served: %s", user, name, words, out)
				}
			}
		}
	}
}

// TestWhatIsUnknownIsNoAnswer holds that bindings that nobody let the caller read are no reason to say no.
func TestWhatIsUnknownIsNoAnswer(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op")
	w.Grant(m, "secrets", ops, "op", "get secrets")

	question := []string{"why", ops + "/op", "-n", m, "--verb", "get", "--resource", "secrets"}

	if out, errOut, code := as(w, "stranger", question...); code != cli.ExitFailed || !strings.HasPrefix(out, "Unknown: ") ||
		!strings.Contains(errOut, "you may not list rolebindings in namespace "+m) {
		t.Errorf("a stranger: exit code %d: %s%s", code, out, errOut)
	}

	out, errOut, code := as(w, "stranger", append(question, "-o", "json")...)
	data := map[string]any{}

	if err := json.NewDecoder(bytes.NewBufferString(out)).Decode(&data); err != nil || code != cli.ExitFailed {
		t.Fatalf("a stranger: exit code %d: %v: %s%s", code, err, out, errOut)
	}

	if allowed, is := data["allowed"]; !is || allowed != nil {
		t.Errorf("allowed is %v, want null: %s", allowed, out)
	}

	if out, errOut, code := run(w, question...); code != cli.ExitDone {
		t.Errorf("cluster-admin: exit code %d: %s%s", code, out, errOut)
	}
}

// inside makes a user who may do everything in some namespaces, and elsewhere list what plans are made from but Roles and
// RoleBindings.
func inside(w *testbed.World, namespaces ...string) string {
	w.Helper()

	user := "inside-" + namespaces[0]
	role := testbed.ClusterRole(user, "list namespaces", "list,escalate clusterroles") // Who may install as Ambit.

	for group, resources := range map[string][]string{
		rbacv1.GroupName: {"clusterrolebindings"}, "apiextensions.k8s.io": {"*"}, "admissionregistration.k8s.io": {"*"},
		"operator.ibm.com": {"*"}, "namespacescope.ibm.com": {"*"}, "operators.coreos.com": {"*"}, "apps": {"*"},
	} {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: resources, Verbs: []string{"list"},
		})
	}

	ref, subjects := binding(user, user)
	w.Make(role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects})

	ref, _ = binding(user, "cluster-admin")
	for _, namespace := range namespaces {
		w.Make(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, RoleRef: ref, Subjects: subjects,
		})
		lists(w, user, namespace, &rbacv1.RoleList{})
	}

	lists(w, user, "", &rbacv1.ClusterRoleBindingList{})

	return user
}

// TestRightsThatTheFilesTakeAway holds that a plan goes by the roles as the files leave them, also for whoever may list them in
// the namespaces of the scope alone. What the API server says of an account is what it may do now.
func TestRightsThatTheFilesTakeAway(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets", "get configmaps"}, m)
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}, ServiceAccountName: "delegate"})
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	var changed strings.Builder

	for _, r := range []*rbacv1.Role{
		testbed.Role(ops, "op-role", "get configmaps"), testbed.Role(m, "in-member", testbed.InMember()...),
	} {
		r.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))

		text, err := yaml.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}

		changed.WriteString("---\n" + string(text))
	}

	for _, as := range [][]string{nil, {"--as", inside(w, ops, m)}} {
		d := planned(w, cli.ExitMissing, changed.String(), as...)
		// Scopes of other tests, in the whole cluster, reach every namespace.
		at := slices.IndexFunc(d.Scopes, func(s plan.Scope) bool { return s.Scope == "NamespaceScope/"+ops+"/scope" })
		if at < 0 || len(d.Scopes[at].Failed) != 1 || d.Scopes[at].Failed[0].Namespace != m ||
			len(d.Scopes[at].Failed[0].Missing) != 1 || d.Scopes[at].Failed[0].Missing[0].Resources[0] != "configmaps" {
			t.Errorf("%v: the account may write what the files take from it: %+v", as, d)
		}
	}
}

// TestInstallsInSingleNamespaces holds that a plan finds what is in the target of a group, also for whoever may list Roles and
// RoleBindings there and in the namespace of the group alone.
func TestInstallsInSingleNamespaces(t *testing.T) {
	w := &installing{World: beds.Begin(t, "cluster", "--restart-interval=1s")}
	w.ops, w.a = w.Namespace("ops"), w.Namespace("a")

	w.apply(strings.Replace(w.group(), ", serviceAccountName: deployer", "", 1) + "---\n" + w.csv("op.v1", ""))
	w.succeeds(objectOfCSV(w.ops, "op.v1"))

	for _, as := range [][]string{nil, {"--as", inside(w.World, w.ops, w.a)}} {
		if d := planned(w.World, cli.ExitDone, w.csv("op.v1", ""), as...); len(d.Objects) > 0 {
			t.Errorf("%v: what is there is written again: %+v", as, d.Objects)
		}
	}
}
