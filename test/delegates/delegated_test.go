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
	"github.com/ambit-k8s/ambit/internal/testbed"
)

func TestScopeWithoutAccountIsRefused(t *testing.T) {
	w := begin(t, "delegated")
	home, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(home, "op", "get secrets")

	nss := w.Scope(home, members(member))
	c := w.Reports(nss, no, "AuthorizationRequired")

	if !strings.Contains(c.Message, "spec.serviceAccountName") || !strings.Contains(c.Message, home) {
		t.Errorf("the message does not say what to do: %s", c.Message)
	}

	if w.Allowed(home, "op", member, "get secrets") {
		t.Error("it was served all the same")
	}

	w.Remove(nss)
	w.Eventually("a scope for which nothing was made goes", func() error {
		return gone(w, nss)
	})
}

// delegated is a home with an operator, a delegate with every right at home, and members.
func delegated(w *testbed.World, n int, rules ...string) (home string, ns []string) {
	w.Helper()

	home = w.Namespace("home")
	w.Operator(home, "op", rules...)
	w.Make(testbed.Account(home, "delegate"))
	w.Grant(home, "at-home", home, "delegate", testbed.AtHome()...)

	for range n {
		ns = append(ns, w.Namespace("member"))
	}

	slices.Sort(ns)

	return home, ns
}

func named(account string, names ...string) operatorv1.NamespaceScopeSpec {
	spec := members(names...)
	spec.ServiceAccountName = account

	return spec
}

// TestEverythingMissingIsToldAtOnce holds that status names, for each member, all that is missing, and not only what the
// API server happened to refuse first.
func TestEverythingMissingIsToldAtOnce(t *testing.T) {
	w := begin(t, "delegated")
	home, ns := delegated(w, 3, "get,list secrets", "patch deployments", "get configmaps/one")
	w.Grant(ns[0], "all", home, "delegate",
		append([]string{"get,list secrets", "patch deployments", "get configmaps/one"}, testbed.InMember()...)...)
	w.Grant(ns[1], "some", home, "delegate", append([]string{"get secrets"}, testbed.InMember()...)...)

	nss := w.Scope(home, named("delegate", ns...))
	w.Reports(nss, no, "AuthorizationRequired", "2 of 4 members", ns[1]+", "+ns[2])

	for namespace, want := range map[string]string{
		ns[1]: "service account " + home + "/delegate may not get configmaps named one; list secrets; patch deployments of apps",
		ns[2]: "service account " + home + "/delegate may not get configmaps named one; get, list secrets; patch deployments of " +
			"apps; create, delete, patch rolebindings, roles",
	} {
		want += "; to grant it: ambit authorize " + namespace + " --to " + home + " --scope scope"
		f := failure(w, nss, namespace, want)

		if f.Reason != "AuthorizationRequired" || f.Message != want {
			t.Errorf("member %s:\ngot  %s: %s\nwant %s", namespace, f.Reason, f.Message, want)
		}
	}

	w.May(home, "op", ns[0], "list secrets")

	if slices.Contains(nss.Status.ValidatedMembers, ns[1]) || !slices.Contains(nss.Status.ValidatedMembers, ns[0]) {
		t.Errorf("members in the list: %v", nss.Status.ValidatedMembers)
	}

	for _, refused := range ns[1:] {
		if w.Allowed(home, "op", refused, "get secrets") {
			t.Errorf("part of a refused role came to %s", refused)
		}
	}
}

// TestHealsAsSoonAsItIsGranted holds it for each of the ways by which a right can arrive.
func TestHealsAsSoonAsItIsGranted(t *testing.T) {
	for name, grant := range map[string]func(w *testbed.World, member, home string){
		"a Role and a RoleBinding": func(w *testbed.World, member, home string) {
			w.Grant(member, "late", home, "delegate", append(testbed.InMember(), "get secrets")...)
		},
		"a ClusterRole and a RoleBinding": func(w *testbed.World, member, home string) {
			w.Make(testbed.ClusterRole("late-"+home, append(testbed.InMember(), "get secrets")...))
			w.Make(testbed.Bind(member, "ClusterRole", "late-"+home, home, "delegate"))
		},
		"a ClusterRoleBinding": func(w *testbed.World, _, home string) {
			w.Make(testbed.ClusterRole("wide-"+home, append(testbed.InMember(), "get secrets")...), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "wide-" + home},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "wide-" + home},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: home, Name: "delegate"}},
			})
		},
		"the command that status gives": func(w *testbed.World, member, home string) {
			if out, code := w.Ambit("authorize", member, "--to", home, "--scope", "scope"); code != 0 {
				w.Fatalf("exit code %d: %s", code, out)
			}
		},
		"the right to escalate and to bind": func(w *testbed.World, member, home string) {
			w.Grant(member, "late", home, "delegate", append(testbed.InMember(), "escalate,bind roles")...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			home, ns := delegated(w, 1, "get secrets")
			nss := w.Scope(home, named("delegate", ns...))
			w.Reports(nss, no, "AuthorizationRequired")

			grant(w, ns[0], home)
			w.May(home, "op", ns[0], "get secrets")
			w.Reports(nss, yes, "Reconciled")
		})
	}
}

// TestClusterRoleNeedsTheRightToBindIt holds that a ClusterRole is bound by whoever may bind it or holds its rules, and
// that a delegate who may not is told so.
func TestClusterRoleNeedsTheRightToBindIt(t *testing.T) {
	w := begin(t, "delegated")
	home, ns := delegated(w, 3)
	w.Make(testbed.ClusterRole("shared-"+home, "get secrets"), testbed.Bind(home, "ClusterRole", "shared-"+home, home, "op"))
	w.Grant(ns[0], "bind", home, "delegate", append(testbed.InMember(), "bind clusterroles/shared-"+home)...)
	w.Grant(ns[1], "hold", home, "delegate", append(testbed.InMember(), "get secrets")...)
	w.Grant(ns[2], "neither", home, "delegate", testbed.InMember()...)

	nss := w.Scope(home, named("delegate", ns...))
	w.Reports(nss, no, "AuthorizationRequired")
	w.May(home, "op", ns[0], "get secrets")
	w.May(home, "op", ns[1], "get secrets")

	w.Reports(nss, no, "AuthorizationRequired", "1 of 4 members")
	failure(w, nss, ns[2], "may not bind clusterroles named shared-"+home+";")
}

// TestAllowedSubset holds that a scope which allows a subset goes without what its delegate may not project.
func TestAllowedSubset(t *testing.T) {
	w := begin(t, "delegated")
	home, ns := delegated(w, 1, "get secrets")
	w.Grant(home, "more", home, "op", "get pods")
	w.Grant(ns[0], "some", home, "delegate", append(testbed.InMember(), "get pods")...)

	spec := named("delegate", ns...)
	spec.AllowSubsetProjection = true
	nss := w.Scope(home, spec)
	w.Reports(nss, yes, "SubsetProjected")
	w.May(home, "op", ns[0], "get pods")

	want := []string{ns[0] + "/op-role: service account " + home + "/delegate may not get secrets"}
	w.Eventually("status says what was left out", func() error {
		w.Reports(nss, yes, "SubsetProjected")

		if !slices.Equal(nss.Status.UnprojectedRoles, want) {
			return fmt.Errorf("got %q, want %q", nss.Status.UnprojectedRoles, want)
		}

		return nil
	})
}

// TestHomeIsNamedToo holds that what a delegate lacks at home is told like any other member.
func TestHomeIsNamedToo(t *testing.T) {
	w := begin(t, "delegated")
	home, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(home, "op", "get secrets")
	w.Make(testbed.Account(home, "delegate"))
	w.Grant(member, "all", home, "delegate", append(testbed.InMember(), "get secrets")...)

	nss := w.Scope(home, named("delegate", member))
	w.Reports(nss, no, "AuthorizationRequired", "ConfigMap namespace-scope")

	f := failure(w, nss, home, "may not create, delete, patch configmaps named namespace-scope; create pods/eviction;")
	if !strings.HasSuffix(f.Message, "ambit authorize "+home+" --to "+home+" --scope scope") {
		t.Errorf("what is missing at home: %s", f.Message)
	}

	w.Grant(home, "at-home", home, "delegate", testbed.AtHome()...)
	w.Reports(nss, yes, "Reconciled")
}

func TestMissingAccountIsNotWrittenAs(t *testing.T) {
	w := begin(t, "delegated")
	home, ns := delegated(w, 1, "get secrets")
	w.Grant(ns[0], "all", home, "absent", append(testbed.InMember(), "get secrets")...)
	w.Grant(home, "absent", home, "absent", testbed.AtHome()...)

	nss := w.Scope(home, named("absent", ns...))
	if c := w.Reports(nss, no, "AuthorizationRequired"); !strings.Contains(c.Message, home+"/absent does not exist") {
		t.Errorf("the message does not name the account: %s", c.Message)
	}

	if w.Allowed(home, "op", ns[0], "get secrets") {
		t.Error("it was written as an account that does not exist")
	}

	w.Make(testbed.Account(home, "absent"))
	w.May(home, "op", ns[0], "get secrets")
	w.Reports(nss, yes, "Reconciled")
}

// TestWeakerAccount holds that what the former account wrote and the new one may not take back is told.
func TestWeakerAccount(t *testing.T) {
	w := begin(t, "delegated")
	home, ns := delegated(w, 1, "get secrets")
	w.Make(testbed.Account(home, "weaker"))
	w.Grant(home, "weaker-at-home", home, "weaker", testbed.AtHome()...)
	w.Grant(ns[0], "all", home, "delegate", append(testbed.InMember(), "get secrets")...)

	nss := w.Scope(home, named("delegate", ns...))
	w.Reports(nss, yes, "Reconciled")

	w.Change(nss, func() { nss.Spec.ServiceAccountName, nss.Spec.NamespaceMembers = "weaker", nil })
	w.Reports(nss, no, "AuthorizationRequired")

	failure(w, nss, ns[0], home+"/weaker may not", "delete")

	w.Grant(ns[0], "weaker", home, "weaker", testbed.InMember()...)
	w.MayNot(home, "op", ns[0], "get secrets")
	w.Reports(nss, yes, "Reconciled")
}

// TestHomeGoesWithItsDelegate holds that a namespace with a scope can be deleted: its accounts go before its scopes, and
// what was projected goes even so.
func TestHomeGoesWithItsDelegate(t *testing.T) {
	w := begin(t, "delegated")
	home, ns := delegated(w, 1, "get secrets")
	w.Grant(ns[0], "all", home, "delegate", append(testbed.InMember(), "get secrets")...)

	nss := w.Scope(home, named("delegate", ns...))
	w.Reports(nss, yes, "Reconciled")
	w.Remove(&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: home},
	})
	w.MayNot(home, "op", ns[0], "get secrets")
	w.Eventually("the scope goes", func() error { return gone(w, nss) })

	left := &rbacv1.RoleList{}
	err := w.Client.List(w.Context(), left, client.InNamespace(ns[0]), client.HasLabels{"ambit.dev/scope"})

	if err != nil || len(left.Items) > 0 {
		t.Errorf("left behind: %v (%v)", left.Items, err)
	}
}
