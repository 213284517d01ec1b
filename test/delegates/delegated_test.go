package delegates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

func TestScopeWithoutAccountIsRefused(t *testing.T) {
	w := begin(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, members(member))
	c := w.Reports(nss, no, "AuthorizationRequired")

	if !strings.Contains(c.Message, "spec.serviceAccountName") || !strings.Contains(c.Message, ops) {
		t.Errorf("the message does not say what to do: %s", c.Message)
	}

	if w.Allowed(ops, "op", member, "get secrets") {
		t.Error("it was served all the same")
	}

	w.Remove(nss)
	w.Eventually("a scope for which nothing was made goes", w.Gone(nss))
}

// delegated is an operator namespace with an operator, a delegate with every right in the operator namespace, and members.
func delegated(w *testbed.World, n int, rules ...string) (ops string, ns []string) {
	w.Helper()

	ops = w.Namespace("home")
	w.Operator(ops, "op", rules...)
	w.Make(testbed.Account(ops, "delegate"))
	w.Grant(ops, "at-home", ops, "delegate", testbed.InOperatorNamespace()...)

	for range n {
		ns = append(ns, w.Namespace("member"))
	}

	slices.Sort(ns)

	return ops, ns
}

func named(account string, names ...string) operatorv1.NamespaceScopeSpec {
	spec := members(names...)
	spec.ServiceAccountName = account

	return spec
}

// TestEverythingMissingIsReportedAtOnce holds that status names, for each member, all that is missing, and not only what the
// API server happened to refuse first.
func TestEverythingMissingIsReportedAtOnce(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 3, "get,list secrets", "patch deployments", "get configmaps/one")
	w.Grant(ns[0], "all", ops, "delegate",
		append([]string{"get,list secrets", "patch deployments", "get configmaps/one"}, testbed.InMember()...)...)
	w.Grant(ns[1], "some", ops, "delegate", append([]string{"get secrets"}, testbed.InMember()...)...)

	nss := w.Scope(ops, named("delegate", ns...))
	w.Reports(nss, no, "AuthorizationRequired", "2 of 4 members", ns[1]+", "+ns[2])

	for namespace, want := range map[string]string{
		ns[1]: "service account " + ops + "/delegate may not get configmaps named one; list secrets; patch deployments of apps",
		ns[2]: "service account " + ops + "/delegate may not get configmaps named one; get, list secrets; patch deployments of " +
			"apps; create, delete, patch rolebindings, roles",
	} {
		want += "; to grant it: ambit authorize " + namespace + " --to " + ops + " --scope scope"
		f := failure(w, nss, namespace, want)

		if f.Reason != "AuthorizationRequired" || f.Message != want {
			t.Errorf("member %s:\ngot  %s: %s\nwant %s", namespace, f.Reason, f.Message, want)
		}
	}

	w.May(ops, "op", ns[0], "list secrets")

	if slices.Contains(nss.Status.ValidatedMembers, ns[1]) || !slices.Contains(nss.Status.ValidatedMembers, ns[0]) {
		t.Errorf("members in the list: %v", nss.Status.ValidatedMembers)
	}

	for _, refused := range ns[1:] {
		if w.Allowed(ops, "op", refused, "get secrets") {
			t.Errorf("part of a refused role came to %s", refused)
		}
	}
}

// TestHealsAsSoonAsItIsGranted holds it for each of the ways by which a right can arrive.
func TestHealsAsSoonAsItIsGranted(t *testing.T) {
	for name, grant := range map[string]func(w *testbed.World, member, ops string){
		"a Role and a RoleBinding": func(w *testbed.World, member, ops string) {
			w.Grant(member, "late", ops, "delegate", append(testbed.InMember(), "get secrets")...)
		},
		"a ClusterRole and a RoleBinding": func(w *testbed.World, member, ops string) {
			w.Make(testbed.ClusterRole("late-"+ops, append(testbed.InMember(), "get secrets")...))
			w.Make(testbed.Bind(member, "ClusterRole", "late-"+ops, ops, "delegate"))
		},
		"a ClusterRoleBinding": func(w *testbed.World, _, ops string) {
			w.Make(testbed.ClusterRole("wide-"+ops, append(testbed.InMember(), "get secrets")...), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "wide-" + ops},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "wide-" + ops},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ops, Name: "delegate"}},
			})
		},
		"the command that status gives": func(w *testbed.World, member, ops string) {
			if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", "scope"); code != 0 {
				w.Fatalf("exit code %d: %s", code, out)
			}
		},
		"the right to escalate and to bind": func(w *testbed.World, member, ops string) {
			w.Grant(member, "late", ops, "delegate", append(testbed.InMember(), "escalate,bind roles")...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			ops, ns := delegated(w, 1, "get secrets")
			nss := w.Scope(ops, named("delegate", ns...))
			w.Reports(nss, no, "AuthorizationRequired")

			grant(w, ns[0], ops)
			w.May(ops, "op", ns[0], "get secrets")
			w.Reports(nss, yes, "Reconciled")
		})
	}
}

// TestClusterRoleNeedsTheRightToBindIt holds that a ClusterRole is bound by whoever may bind it or holds its rules, and
// that a delegate who may not is told so.
func TestClusterRoleNeedsTheRightToBindIt(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 3)
	w.Make(testbed.ClusterRole("shared-"+ops, "get secrets"), testbed.Bind(ops, "ClusterRole", "shared-"+ops, ops, "op"))
	w.Grant(ns[0], "bind", ops, "delegate", append(testbed.InMember(), "bind clusterroles/shared-"+ops)...)
	w.Grant(ns[1], "hold", ops, "delegate", append(testbed.InMember(), "get secrets")...)
	w.Grant(ns[2], "neither", ops, "delegate", testbed.InMember()...)

	nss := w.Scope(ops, named("delegate", ns...))
	w.Reports(nss, no, "AuthorizationRequired")
	w.May(ops, "op", ns[0], "get secrets")
	w.May(ops, "op", ns[1], "get secrets")

	w.Reports(nss, no, "AuthorizationRequired", "1 of 4 members")
	failure(w, nss, ns[2], "may not bind clusterroles named shared-"+ops+";")
}

// TestAllowedSubset holds that a scope which allows a subset goes without what its delegate may not project.
func TestAllowedSubset(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")
	w.Grant(ops, "more", ops, "op", "get pods")
	w.Grant(ns[0], "some", ops, "delegate", append(testbed.InMember(), "get pods")...)

	spec := named("delegate", ns...)
	spec.AllowSubsetProjection = true
	nss := w.Scope(ops, spec)
	w.Reports(nss, yes, "SubsetProjected")
	w.May(ops, "op", ns[0], "get pods")

	want := []string{ns[0] + "/op-role: service account " + ops + "/delegate may not get secrets"}
	w.Eventually("status says what was left out", func() error {
		w.Reports(nss, yes, "SubsetProjected")

		if !slices.Equal(nss.Status.UnprojectedRoles, want) {
			return fmt.Errorf("got %q, want %q", nss.Status.UnprojectedRoles, want)
		}

		return nil
	})
}

// TestOperatorNamespaceIsNamedToo holds that what a delegate lacks in the operator namespace is told like any other member.
func TestOperatorNamespaceIsNamedToo(t *testing.T) {
	w := begin(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Make(testbed.Account(ops, "delegate"))
	w.Grant(member, "all", ops, "delegate", append(testbed.InMember(), "get secrets")...)

	nss := w.Scope(ops, named("delegate", member))
	w.Reports(nss, no, "AuthorizationRequired", "ConfigMap namespace-scope")

	f := failure(w, nss, ops, "may not create, delete, patch configmaps named namespace-scope; create pods/eviction;")
	if !strings.HasSuffix(f.Message, "ambit authorize "+ops+" --to "+ops+" --scope scope") {
		t.Errorf("what is missing at home: %s", f.Message)
	}

	w.Grant(ops, "at-home", ops, "delegate", testbed.InOperatorNamespace()...)
	w.Reports(nss, yes, "Reconciled")
}

func TestMissingAccountIsNotWrittenAs(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")
	w.Grant(ns[0], "all", ops, "absent", append(testbed.InMember(), "get secrets")...)
	w.Grant(ops, "absent", ops, "absent", testbed.InOperatorNamespace()...)

	nss := w.Scope(ops, named("absent", ns...))
	if c := w.Reports(nss, no, "AuthorizationRequired"); !strings.Contains(c.Message, ops+"/absent does not exist") {
		t.Errorf("the message does not name the account: %s", c.Message)
	}

	if w.Allowed(ops, "op", ns[0], "get secrets") {
		t.Error("it was written as an account that does not exist")
	}

	w.Make(testbed.Account(ops, "absent"))
	w.May(ops, "op", ns[0], "get secrets")
	w.Reports(nss, yes, "Reconciled")
}

// TestWeakerAccount holds that what the former account wrote and the new one may not take back is told.
func TestWeakerAccount(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")
	w.Make(testbed.Account(ops, "weaker"))
	w.Grant(ops, "weaker-at-home", ops, "weaker", testbed.InOperatorNamespace()...)
	w.Grant(ns[0], "all", ops, "delegate", append(testbed.InMember(), "get secrets")...)

	nss := w.Scope(ops, named("delegate", ns...))
	w.Reports(nss, yes, "Reconciled")

	w.Change(nss, func() { nss.Spec.ServiceAccountName, nss.Spec.NamespaceMembers = "weaker", nil })
	w.Reports(nss, no, "AuthorizationRequired")

	failure(w, nss, ns[0], ops+"/weaker may not", "delete")

	w.Grant(ns[0], "weaker", ops, "weaker", testbed.InMember()...)
	w.MayNot(ops, "op", ns[0], "get secrets")
	w.Reports(nss, yes, "Reconciled")
}

// TestOperatorNamespaceGoesWithItsDelegate holds that a namespace with a scope can be deleted: its accounts go before its scopes,
// and what was projected goes even so.
func TestOperatorNamespaceGoesWithItsDelegate(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")
	w.Grant(ns[0], "all", ops, "delegate", append(testbed.InMember(), "get secrets")...)

	nss := w.Scope(ops, named("delegate", ns...))
	w.Reports(nss, yes, "Reconciled")
	w.Remove(&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: ops},
	})
	w.MayNot(ops, "op", ns[0], "get secrets")
	w.Eventually("the scope goes", w.Gone(nss))

	left := &rbacv1.RoleList{}
	err := w.Client.List(w.Context(), left, client.InNamespace(ns[0]), client.HasLabels{"ambit.dev/scope"})

	if err != nil || len(left.Items) > 0 {
		t.Errorf("left behind: %v (%v)", left.Items, err)
	}
}
