package delegates_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestPreflightGrantsExactlyWhatIsMissing holds that what preflight prints as YAML, once applied, is enough, is nothing that
// was held before, and is taken back by revoke.
func TestPreflightGrantsExactlyWhatIsMissing(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 2, "get,list secrets", "patch deployments")
	w.Make(testbed.ClusterRole("shared-"+ops, "get configmaps"), testbed.Bind(ops, "ClusterRole", "shared-"+ops, ops, "op"))
	w.Grant(ns[0], "some", ops, "delegate", "get secrets", "create,patch,delete roles", "get configmaps")

	nss := w.Scope(ops, named("delegate", ns...))
	w.Reports(nss, no, "AuthorizationRequired")

	out, code := w.Ambit("preflight", "-n", ops)
	if code != 3 {
		t.Fatalf("exit code %d, want 3: %s", code, out)
	}

	want := []string{
		ops + " nothing",
		ns[0] + " list secrets | patch deployments of apps | create, delete, patch rolebindings",
		ns[1] + " get, list secrets | patch deployments of apps | bind clusterroles named shared-" + ops +
			" | create, delete, patch rolebindings, roles",
		"service account " + ops + "/delegate lacks permissions in 2 of 3 namespaces",
	}
	flat := flatten(out)

	for _, line := range want {
		if !strings.Contains(strings.ToLower(flat), strings.ToLower(line)) {
			t.Errorf("want %q in\n%s", line, flat)
		}
	}

	yaml, code := w.Ambit("preflight", "scope", "-n", ops, "-o", "yaml")
	if code != 3 || strings.Contains(yaml, "namespace: "+ops+"\n  name") {
		t.Fatalf("exit code %d: %s", code, yaml)
	}

	file := filepath.Join(t.TempDir(), "grant.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}

	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatal(out, err)
	}

	w.Reports(nss, yes, "Reconciled")

	if out, code := w.Ambit("preflight", "-n", ops); code != 0 || !strings.Contains(out, "lacks nothing") {
		t.Errorf("exit code %d: %s", code, out)
	}

	for _, words := range []string{"delete secrets", "create pods", "escalate roles", "bind roles", "get roles"} {
		if w.Allowed(ops, "delegate", ns[1], words) {
			t.Errorf("more than what was missing: %s", words)
		}
	}

	if out, code := w.Ambit("revoke", ns[1], "--to", ops, "--scope", "scope"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.MayNot(ops, "delegate", ns[1], "create roles")
}

// flatten joins the lines of a table that belong to one namespace.
func flatten(out string) string {
	var b strings.Builder

	for line := range strings.Lines(out) {
		fields := strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, " ") {
			b.WriteString(" | " + fields)
		} else {
			b.WriteString("\n" + fields)
		}
	}

	return b.String()
}

// TestPreflightCountsInjection holds that what a csvInjector needs in the operator namespace is asked for, granted by the
// authorization in the operator namespace, and that what no namespace can grant is at least said.
func TestPreflightCountsInjection(t *testing.T) {
	w := begin(t, "delegated")
	ops, _ := delegated(w, 0)
	csvs, hooks := "patch clusterserviceversions of operators.coreos.com", "webhook configurations have no namespace"

	nss := w.Scope(ops, named("delegate"))
	answers(w, ops, 0, []string{"lacks nothing"}, csvs, hooks)

	w.Change(nss, func() { nss.Spec.CSVInjector = &operatorv1.Injector{} })
	answers(w, ops, 3, []string{"\n" + ops + " " + csvs + "\n", hooks, ops + "/delegate"})

	if out, code := w.Ambit("authorize", ops, "--to", ops); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	answers(w, ops, 0, []string{"lacks nothing", hooks}, csvs)

	// A cluster administrator's part is known once it is there.
	role := testbed.ClusterRole("hooks-" + ops)
	role.Rules = authority.OfWebhooks()
	w.Make(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "delegate"}},
	})
	answers(w, ops, 0, []string{"lacks nothing"}, hooks)
}

// answers waits until preflight answers with an exit code and some words, and without others: the API server hears of a grant a
// moment after it was written.
func answers(w *testbed.World, ops string, want int, words []string, without ...string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("preflight exits with %d and says %q", want, words), func() error {
		out, code := w.Ambit("preflight", "-n", ops)
		flat := flatten(out)

		if code != want || !containsAll(flat, words) ||
			slices.ContainsFunc(without, func(word string) bool { return strings.Contains(flat, word) }) {
			return fmt.Errorf("exit code %d: %s", code, out)
		}

		return nil
	})
}

func TestPreflightOfAFile(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")
	file := filepath.Join(t.TempDir(), "scope.yaml")
	content := `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: planned, namespace: ` + ops + `}
spec: {namespaceMembers: [` + ns[0] + `]}
---
apiVersion: namespacescope.ibm.com/v1alpha1
kind: NamespaceScope
metadata: {name: older, namespace: ` + ops + `}
spec: {namespaceMembers: [` + ns[0] + `]}
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	out, code := w.Ambit("preflight", "-f", file, "--service-account", "delegate")
	if code != 3 || strings.Count(out, "get secrets") != 2 {
		t.Errorf("exit code %d: %s", code, out)
	}

	for what, arguments := range map[string][]string{
		"names no service account":         {"preflight", "-f", file},
		"there is no NamespaceScope":       {"preflight", "-n", ops},
		"give table, yaml or json":         {"preflight", "-n", ops, "-o", "wide"},
		"a scope of the cluster and -f":    {"preflight", "x", "-f", file},
		"which is no valid name":           {"preflight", "-n", ops, "--service-account", "A/b"},
		"does not exist":                   {"preflight", "-f", filepath.Join(t.TempDir(), "nothing.yaml")},
		"there is no such NamespaceScope ": {"preflight", "nosuch", "-n", makeOther(w, ops)},
	} {
		out, code := w.Ambit(arguments...)
		if code != 1 && code != 2 || !strings.Contains(out, what) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
			t.Errorf("%v: exit code %d, want one line with %q: %s", arguments, code, what, out)
		}
	}
}

// TestPreflightOfObjects holds that what preflight prints for objects, once applied, is enough to apply them.
func TestPreflightOfObjects(t *testing.T) {
	w := begin(t, "delegated")
	ns := w.Namespace("objects")
	user := "somebody-" + ns
	path := filepath.Join(t.TempDir(), "objects.yaml")
	content := `apiVersion: v1
kind: ConfigMap
metadata: {name: one}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: one}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: one, namespace: ` + ns + `}]
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	out, code := w.Ambit("preflight", "-f", path, "--for-user", user, "--in", ns)
	if code != 3 || !strings.Contains(out, "create, get, list, watch configmaps") ||
		!strings.Contains(out, "User "+user+" lacks") {
		t.Errorf("exit code %d: %s", code, out)
	}

	apply := []string{"apply", "-n", ns, "-f", path, "--as", user}
	if out, err := w.Cluster.Kubectl(t.Context(), apply...); err == nil {
		t.Error("it could be applied before: ", out)
	}

	grants, _ := w.Ambit("preflight", "-f", path, "--for-user", user, "--in", ns, "-o", "yaml")
	grant := filepath.Join(t.TempDir(), "grant.yaml")

	if err := os.WriteFile(grant, []byte(grants), 0o600); err != nil {
		t.Fatal(err)
	}

	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", grant); err != nil {
		t.Fatal(out, err)
	}

	w.Eventually("nothing is missing any more", func() error {
		if out, code := w.Ambit("preflight", "-f", path, "--for-user", user, "--in", ns); code != 0 {
			return errors.New(out)
		}

		return nil
	})

	if out, err := w.Cluster.Kubectl(t.Context(), apply...); err != nil {
		t.Error(out, err)
	}

	for what, arguments := range map[string][]string{
		"give one of them":      {"preflight", "-f", path, "--for-user", "a", "--for-group", "b"},
		"give -f, too":          {"preflight", "--for-user", "a"},
		"--namespace-selector":  {"preflight", "-f", path, "--namespace-selector", "a in"},
		"which is no valid":     {"preflight", "-f", path, "--in", "A"},
		"the cluster does not ": {"preflight", "-f", filepath.Join(testRoot(), "test", "demo", "4-certificate.yaml")},
	} {
		out, code := w.Ambit(arguments...)
		if code != 1 && code != 2 || !strings.Contains(out, what) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
			t.Errorf("%v: exit code %d, want one line with %q: %s", arguments, code, what, out)
		}
	}
}

// TestPreflightCountsTheGuard: Ambit's own admission policies ask more of whoever writes a scope than RBAC does. What preflight
// prints, once applied, is enough for them, too.
func TestPreflightCountsTheGuard(t *testing.T) {
	w := begin(t, "delegated")
	ops := w.Namespace("home")
	jane := "jane-" + ops
	writes := testbed.Role(ops, "jane", "create,get,patch namespacescopes", "create,get,patch configmaps")
	groups := testbed.Rule("create,get,patch operatorgroups")
	groups.APIGroups = []string{"operators.coreos.com"}
	writes.Rules[0].APIGroups = append(writes.Rules[0].APIGroups, "namespacescope.ibm.com")
	writes.Rules = append(writes.Rules, groups)

	bound := testbed.Bind(ops, "Role", "jane", ops, "none")
	bound.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: jane}}
	w.Make(testbed.Account(ops, "scope-writer"), writes, bound)

	for name, tc := range map[string]struct{ content, lacks string }{
		"scope": {
			"apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s}\nspec: {serviceAccountName: scope-writer}\n",
			"impersonate serviceaccounts named scope-writer",
		},
		"manual": {
			"apiVersion: namespacescope.ibm.com/v1alpha1\nkind: NamespaceScope\nmetadata: {name: m}\nspec: {manualManagement: true}\n",
			"impersonate serviceaccounts named ambit",
		},
		"group": {
			"apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: g}\nspec: {serviceAccountName: installer}\n",
			"impersonate serviceaccounts named installer",
		},
		"catalog": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {clusterServiceVersions: \"\"}\n", "impersonate serviceaccounts",
		},
	} {
		path, grant := filepath.Join(t.TempDir(), name+".yaml"), filepath.Join(t.TempDir(), "grant.yaml")
		if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}

		preflight := []string{"preflight", "-f", path, "-n", ops, "--for-user", jane}
		apply := []string{"apply", "-n", ops, "-f", path, "--as", jane}

		w.Eventually(name+" is refused, as preflight says", func() error {
			out, code := w.Ambit(preflight...)
			if lines := flatten(out); code != 3 || !strings.Contains(lines, ops+" "+tc.lacks+"\n") {
				return fmt.Errorf("exit code %d: %s", code, out)
			}

			out, err := w.Cluster.Kubectl(t.Context(), append(slices.Clone(apply), "--dry-run=server")...)
			if err == nil || !strings.Contains(out, "ValidatingAdmissionPolicy 'ambit-delegate-identity") {
				return fmt.Errorf("it could be applied before, or is refused by another: %s %w", out, err)
			}

			return nil
		})

		grants, _ := w.Ambit(append(slices.Clone(preflight), "-o", "yaml")...)
		if err := os.WriteFile(grant, []byte(grants), 0o600); err != nil {
			t.Fatal(err)
		}

		if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", grant); err != nil {
			t.Fatal(out, err)
		}

		w.Eventually(name+" can be applied", func() error {
			if out, code := w.Ambit(preflight...); code != 0 {
				return errors.New(out)
			}

			out, err := w.Cluster.Kubectl(t.Context(), append(slices.Clone(apply), "--dry-run=server")...)
			if err != nil {
				return fmt.Errorf("%s: %w", out, err)
			}

			return nil
		})

		if out, err := w.Cluster.Kubectl(t.Context(), "delete", "-f", grant); err != nil {
			t.Fatal(out, err)
		}
	}

	// Whoever may not see the policies is told that these are not counted.
	scope := filepath.Join(t.TempDir(), "scope.yaml")
	content := "apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s}\n"
	if err := os.WriteFile(scope, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	w.Make(testbed.ClusterRole("impersonates-"+ops, "impersonate users"), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "impersonates-" + ops},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "impersonates-" + ops},
		Subjects:   bound.Subjects,
	})
	w.Eventually("what cannot be seen is noted", func() error {
		out, code := w.Ambit("preflight", "-f", scope, "-n", ops, "--for-user", jane, "--as", jane)
		if code != 0 || !strings.Contains(out, "may not list validatingadmissionpolic") {
			return fmt.Errorf("exit code %d: %s", code, out)
		}

		return nil
	})
}

func makeOther(w *testbed.World, ops string) string {
	w.Helper()

	other := w.Namespace("other")
	w.Scope(other, members(ops))

	return other
}
