package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/testbed"
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
		"a matrix of them":                    {viewer, []string{"matrix", "-n", ops}, []string{ops + "/op", "? cannot be told"}},
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

		for _, words := range []string{"✗", "missing", "AuthorizationRequired", "No operator", "failed:"} {
			if strings.Contains(out, words) {
				t.Errorf("%s: %q, but it is served: %s", name, words, out)
			}
		}
	}
}

// TestWhatCannotBeToldIsNoAnswer holds that bindings that nobody let the caller read are no reason to say no.
func TestWhatCannotBeToldIsNoAnswer(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op")
	w.Grant(m, "secrets", ops, "op", "get secrets")

	question := []string{"why", ops + "/op", "-n", m, "--verb", "get", "--resource", "secrets"}

	if out, errOut, code := as(w, "stranger", question...); code != cli.ExitFailed || !strings.HasPrefix(out, "Cannot be told: ") ||
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
