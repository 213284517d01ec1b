package attacks_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// CVE-2025-13888 (gitops operator): a namespace administrator listed other namespaces in a resource, the operator projected
// RBAC there, and the cluster fell. The target's owner authorizations, or the author is cluster-privileged; never neither.
func TestCVE202513888NamespaceAdminNamesOtherNamespaces(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		w := begin(t, "cluster")
		ops, victim := w.Namespace("home"), w.Namespace("victim")
		w.Operator(ops, "op", "get secrets")

		mallory := w.Tenant("mallory-"+ops, ops)
		for name, spec := range map[string]operatorv1.NamespaceScopeSpec{
			"by name":  testbed.Members(victim),
			"by label": {NamespaceSelector: selector(`{"kubernetes.io/metadata.name":"` + victim + `"}`)},
			"nothing":  {},
		} {
			nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}, Spec: spec}
			refused(w, "a scope, written by a namespace administrator, "+name, mallory.Create(t.Context(), nss))
		}

		w.Holds(ops, func() error { return denied(w, ops, "op", victim, "get secrets") })
	})

	t.Run("delegated", func(t *testing.T) {
		w := begin(t, "delegated")
		ops, victim := w.Namespace("home"), w.Namespace("victim")
		w.Operator(ops, "op", "get secrets")

		mallory := w.Tenant("mallory-"+ops, ops)
		// An administrator may use every account of the namespace, and give it what an administrator has there.
		admin := testbed.Bind(ops, "ClusterRole", "admin", ops, "deputy")
		for _, obj := range []client.Object{testbed.Account(ops, "deputy"), admin} {
			if err := mallory.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}

		nss := &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}, Spec: testbed.DelegatedBy("deputy", victim),
		}
		if err := mallory.Create(t.Context(), nss); err != nil {
			t.Fatalf("writing a scope harms nobody: %v", err)
		}

		w.Reports(nss, no, "AuthorizationRequired")

		if err := denied(w, ops, "op", victim, "get secrets"); err != nil {
			t.Error(err)
		}

		if left := copies(w, victim); len(left) > 0 {
			t.Errorf("written into the victim's namespace: %v", left)
		}
	})
}

func denied(w *testbed.World, ops, account, namespace, words string) error {
	w.Helper()

	if w.Allowed(ops, account, namespace, words) {
		return &allowedError{ops + "/" + account + " may " + words + " in " + namespace}
	}

	return nil
}

type allowedError struct{ what string }

func (e *allowedError) Error() string { return e.what }

// CVE-2026-22872 (Capsule): a namespaced resource made the controller create cluster-scoped objects. The kinds are a closed
// list, and none of it is cluster-scoped.
func TestCVE202622872NothingClusterScoped(t *testing.T) {
	// Alone: templates and groups of other tests do lead to what has no namespace.
	w := beds.Alone(t, "cluster")
	w.Rest(time.Now())

	began := time.Now()
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "* *")
	w.Make(testbed.ClusterRole("reach-"+ops, "* *"), testbed.Bind(ops, "ClusterRole", "reach-"+ops, ops, "op"))

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", member, "delete secrets")
	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))

	seen := map[string]bool{}

	for _, r := range writes(w) {
		if r.Received.Before(began) {
			continue
		}

		seen[r.Object.Namespace+" "+r.Object.Resource] = true

		if r.Object.Namespace == "" {
			t.Errorf("Ambit wrote something cluster-scoped: %s", r.String())
		}
	}

	for _, what := range []string{member + " roles", member + " rolebindings", ops + " configmaps"} {
		if !seen[what] {
			t.Errorf("the test saw no write to %s", what)
		}
	}

	if w.Allowed(ops, "op", "", "get nodes") || w.Allowed(ops, "op", w.Namespace("other"), "get secrets") {
		t.Error("a ClusterRole that was bound in a member reaches beyond it")
	}
}

// CVE-2025-55205 and CVE-2024-39690 (Capsule): tenants put labels on system namespaces and were selected. Labels select no
// system namespace; it has to be named.
func TestCVE202555205LabelsOnSystemNamespaces(t *testing.T) {
	w := begin(t, "cluster")
	ops := w.Namespace("home")
	label := "attack-" + ops
	other := w.Namespace("other", label+"=yes")
	openshift := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-" + ops}}
	w.Make(openshift)
	w.Operator(ops, "op", "get secrets")

	system := []string{"kube-system", "kube-public", openshift.Name, embedded.Namespace}
	for _, name := range system {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.Change(ns, func() { metav1.SetMetaDataLabel(&ns.ObjectMeta, label, "yes") })
	}

	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceSelector: selector(`{"` + label + `":"yes"}`)})
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", other, "get secrets")

	for _, name := range system {
		if err := denied(w, ops, "op", name, "get secrets"); err != nil {
			t.Error(err)
		}
	}
}

func selector(raw string) *operatorv1.NamespaceSelector {
	return &operatorv1.NamespaceSelector{Raw: []byte(raw)}
}

// CVE-2022-46167 (Capsule): a tenant removed the owner reference that enforcement hung on. Nothing hangs on metadata that
// its subject can edit: a copy without any mark is still taken back with the rest.
func TestCVE202246167TenantRemovesTheMarks(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, testbed.Members(member))
	w.May(ops, "op", member, "get secrets")

	owner := w.Tenant("owner-"+member, member)
	bindings := &rbacv1.RoleBindingList{}

	if err := owner.List(t.Context(), bindings, client.InNamespace(member)); err != nil {
		t.Fatal(err)
	}

	stripped := 0

	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Annotations["ambit.dev/owner"] != "" {
			b.Labels, b.Annotations, b.OwnerReferences = nil, nil, nil
			if err := owner.Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}

			stripped++
		}
	}

	if stripped == 0 {
		t.Fatal("there was no copy to take the marks from")
	}

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
	w.MayNot(ops, "op", member, "get secrets")
}

// CVE-2023-46254 (capsule-proxy): a service account was matched by its name without its namespace. Every key is a namespace
// and a name.
func TestCVE202346254AccountsOfTheSameName(t *testing.T) {
	w := begin(t, "cluster")
	ops, member, other := w.Namespace("home"), w.Namespace("member"), w.Namespace("other")
	w.Operator(ops, "op", "get pods")
	w.Make(testbed.Account(member, "op"), testbed.Account(other, "op"))
	// A binding in the operator namespace that names accounts of the same name elsewhere.
	w.Make(testbed.Role(ops, "foreign", "get secrets"), testbed.Bind(ops, "Role", "foreign", other, "op"))

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", member, "get pods")

	for _, who := range []string{member, other} {
		for _, words := range []string{"get pods", "get secrets"} {
			if err := denied(w, who, "op", member, words); err != nil {
				t.Error(err)
			}
		}
	}

	if err := denied(w, ops, "op", member, "get secrets"); err != nil {
		t.Error(err)
	}
}

// TestSubjectWithoutANamespace: an account that a RoleBinding names without a namespace is the one beside it, as the API server
// reads it: its permission is projected, with the namespace, and the member's own account of that name gets nothing.
func TestSubjectWithoutANamespace(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get pods")

	bare := testbed.Bind(ops, "Role", "bare", ops, "op")
	bare.Subjects[0].Namespace = ""
	w.Make(testbed.Account(member, "op"), testbed.Role(ops, "bare", "get secrets"), bare)
	w.May(ops, "op", ops, "get secrets")

	w.Reports(w.Scope(ops, testbed.Members(member)), yes, "Reconciled")
	w.May(ops, "op", member, "get secrets")

	if err := denied(w, member, "op", member, "get secrets"); err != nil {
		t.Error(err)
	}

	for _, words := range []string{"pods", "secrets"} {
		if out, code := w.Ambit("why", ops+"/op", "-n", ops, "--verb", "get", "--resource", words); code != 0 {
			t.Errorf("why %s: exit %d\n%s", words, code, out)
		}
	}

	w.Remove(bare)
	w.MayNot(ops, "op", member, "get secrets")
}

// CVE-2026-22039, CVE-2026-41068 and GHSA-79gf-7frw-68m9 (Kyverno): a confused deputy, fixed one field at a time. Whatever a
// scope with an account causes is written as that account; only status, finalizers and events are Ambit's own.
func TestCVE202622039EverythingIsWrittenAsTheDelegate(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets"}, member)

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
	w.Reports(nss, yes, "Reconciled")
	w.Change(nss, func() { nss.Spec.NamespaceMembers = nil })
	w.Reports(nss, yes, "Reconciled")
	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))

	seen := map[string]bool{}

	for _, r := range writes(w) {
		if r.Object.Namespace != ops && r.Object.Namespace != member {
			continue
		}

		own := r.Object.Resource == "namespacescopes" || r.Object.Resource == "events"
		delegate := r.As.Name == "system:serviceaccount:"+ops+":delegate"
		seen[r.Object.Resource] = true

		if own == delegate {
			t.Errorf("written by the wrong one: %s", r.String())
		}
	}

	for _, resource := range []string{"roles", "rolebindings", "configmaps", "deployments"} {
		if !seen[resource] {
			t.Errorf("the test saw no write to %s", resource)
		}
	}
}

// GHSA-jrr2-x33p-6hvc (Kyverno): an error in a selector lookup was swallowed. What cannot be read selects nothing, and
// status says so.
func TestGHSAjrr2SelectorErrorsFailClosed(t *testing.T) {
	w := begin(t, "cluster")
	ops, named := w.Namespace("home"), w.Namespace("named")
	label := "attack-" + ops
	other := w.Namespace("other", label+"=yes")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, testbed.Members(named))
	w.May(ops, "op", named, "get secrets")

	for _, raw := range []string{
		`{}`, `{"matchLabels":{}}`, `{"matchLabels":{"` + label + `":"yes"},"` + label + `":"yes"}`,
		`{"matchExpressions":[{"key":"` + label + `","operator":"Near","values":["yes"]}]}`,
		`{"` + label + `":{"in":["yes"]}}`,
	} {
		w.Change(nss, func() { nss.Spec.NamespaceSelector = selector(raw) })
		w.Reports(nss, no, "InvalidSpec")

		if err := denied(w, ops, "op", other, "get secrets"); err != nil {
			t.Errorf("%s: %v", raw, err)
		}

		if !w.Allowed(ops, "op", named, "get secrets") {
			t.Errorf("%s: the named member is no longer served", raw)
		}
	}
}

// GHSA-4xh5-jcj2-ch8q (flux-operator): with an empty user and no groups no impersonation headers were sent, and the
// controller acted as itself. A scope without an account is nobody's, where Ambit must not act as itself.
func TestGHSA4xh5EmptyIdentity(t *testing.T) {
	w := begin(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, no, "AuthorizationRequired")

	empty := nss.DeepCopy()
	patch := []byte(`{"spec":{"serviceAccountName":""}}`)

	if err := w.Client.Patch(t.Context(), empty, client.RawPatch("application/merge-patch+json", patch)); err == nil {
		t.Error("an empty name of an account was accepted")
	}

	told := false

	for _, r := range writes(w) {
		mine := r.Object.Namespace == ops || r.Object.Namespace == member
		told = told || mine && r.Object.Resource == "namespacescopes"

		if mine && r.Object.Resource != "namespacescopes" && r.Object.Resource != "events" {
			t.Errorf("something was written for a scope without an account: %s", r.String())
		}
	}

	if !told {
		t.Error("the test saw no write of the scope's status")
	}
}

// Issue 3820 of OLM, and others: a tenant who may write catalogs, groups and subscriptions becomes cluster-admin. The roles
// that Kubernetes gives to tenants get no more than a look at such kinds.
func TestOLM3820DefaultRolesOnlyView(t *testing.T) {
	w := begin(t, "cluster")
	ops := w.Namespace("home")

	for _, role := range []string{"admin", "edit", "view"} {
		account := "as-" + role
		w.Make(testbed.Account(ops, account), testbed.Bind(ops, "ClusterRole", role, ops, account))
		w.May(ops, account, ops, "get configmaps")
		// Kubernetes gathers these by aggregation, in its own time.
		w.Eventually(role+" looks at scopes", func() error {
			if !w.AllowedIn(ops, account, ops, "get", operatorv1.GroupVersion.Group, "namespacescopes") {
				return errors.New("it may not yet")
			}

			return nil
		})

		for verb, want := range map[string]bool{"get": true, "create": false, "update": false, "patch": false, "delete": false} {
			for resource, group := range map[string]string{
				"namespacescopes": operatorv1.GroupVersion.Group,
				"operatorgroups":  operatorsv1.GroupVersion.Group, "catalogsources": operatorsv1.GroupVersion.Group,
				"subscriptions": operatorsv1.GroupVersion.Group, "installplans": operatorsv1.GroupVersion.Group,
				"clusterserviceversions": operatorsv1.GroupVersion.Group,
			} {
				if may := w.AllowedIn(ops, account, ops, verb, group, resource); may != want {
					t.Errorf("%s may %s %s: %t, want %t", role, verb, resource, may, want)
				}
			}
		}
	}
}

// The IBM operator appends its own whole role where a source role has a wildcard, so that a projection exceeds its source.
func TestWildcardsAreCopiedAndNotWidened(t *testing.T) {
	w := begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets/*", "list *", "use configmaps")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")

	got, source := copyOf(w, ops, "op-role", member), &rbacv1.Role{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: ops, Name: "op-role"}, source); err != nil {
		t.Fatal(err)
	}

	if a, b := rules(got), rules(source); a != b {
		t.Errorf("got %s, want %s", a, b)
	}

	w.May(ops, "op", member, "list pods")

	for _, words := range []string{"get secrets", "create roles", "delete pods"} {
		if err := denied(w, ops, "op", member, words); err != nil {
			t.Error(err)
		}
	}
}

func rules(r *rbacv1.Role) string {
	var out []string
	for i := range r.Rules {
		out = append(out, r.Rules[i].String())
	}

	return strings.Join(out, "\n")
}
