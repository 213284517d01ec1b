package delegates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// listedIn waits until the watch list of an operator namespace names a member, or does not.
func listedIn(w *testbed.World, ops, list, member string, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s in the watch list of %s: %t", member, ops, want), func() error {
		cm := &corev1.ConfigMap{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: ops, Name: list}, cm); err != nil {
			return err
		}

		if got := slices.Contains(strings.Split(cm.Data["namespaces"], ","), member); got != want {
			return fmt.Errorf("the list is %q", cm.Data["namespaces"])
		}

		return nil
	})
}

// collected is how long the garbage collector may take. It pauses for half a minute and more while it learns of the kinds of a
// cluster that has just begun.
const collected = 3 * time.Minute

// copiesGo waits until nothing that was projected is in a namespace.
func copiesGo(w *testbed.World, namespace string) {
	w.Helper()
	w.Within(collected, "what was projected into "+namespace+" goes", func() error {
		for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
			if err := w.Client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{"ambit.dev/scope"}); err != nil {
				return err
			}

			if n := len(objectsIn(list)); n > 0 {
				return fmt.Errorf("%d of %T are there", n, list)
			}
		}

		return nil
	})
}

func objectsIn(list client.ObjectList) []string {
	var names []string

	switch list := list.(type) {
	case *rbacv1.RoleList:
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	case *rbacv1.RoleBindingList:
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}

	return names
}

func authorizationOf(kind, member, ops, scope string) client.Object {
	meta := metav1.ObjectMeta{Namespace: member, Name: "ambit-authorized-from-" + ops + "." + scope}
	if kind == "Role" {
		return &rbacv1.Role{ObjectMeta: meta}
	}

	return &rbacv1.RoleBinding{ObjectMeta: meta}
}

// TestAuthorizationDeletedByHandIsARevocation holds that whoever deletes either object of their authorization takes all of it
// back: what was projected goes with it, the member leaves the list, and status says how it comes back, which it does by itself.
func TestAuthorizationDeletedByHandIsARevocation(t *testing.T) {
	for profile, kind := range map[string]string{"cluster": "RoleBinding", "delegated": "Role"} {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			ops, member, other := w.Namespace("home"), w.Namespace("member"), w.Namespace("other")
			w.Operator(ops, "op", "get secrets")

			spec := members(member, other)
			spec.ManualManagement = true
			nss := w.Scope(ops, spec)

			for _, name := range []string{member, other} {
				if out, code := w.Ambit("authorize", name, "--to", ops, "--scope", "scope"); code != 0 {
					t.Fatalf("exit code %d: %s", code, out)
				}
			}

			w.Reports(nss, yes, "Reconciled")
			listedIn(w, ops, "namespace-scope", member, true)

			w.Remove(authorizationOf(kind, member, ops, "scope"))
			copiesGo(w, member)
			w.MayNot(ops, "op", member, "get secrets")
			listedIn(w, ops, "namespace-scope", member, false)
			listedIn(w, ops, "namespace-scope", other, true)
			failure(w, nss, member, "to grant it: ambit authorize "+member+" --to "+ops+" --scope scope")

			if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", "scope"); code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}

			w.May(ops, "op", member, "get secrets")
			listedIn(w, ops, "namespace-scope", member, true)
			w.Reports(nss, yes, "Reconciled")
		})
	}
}

// TestAuthorizationDeletedByHandInNamespaced holds it where Ambit sees nothing of the namespace any more.
func TestAuthorizationDeletedByHandInNamespaced(t *testing.T) {
	w := begin(t, "namespaced")
	ops, member, nss := manualBesideAmbit(w)

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", member); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.May(ops, member, member, "get secrets")
	listedIn(w, ops, member, member, true)
	w.Remove(authorizationOf("RoleBinding", member, ops, member))
	copiesGo(w, member)
	w.MayNot(ops, member, member, "get secrets")
	listedIn(w, ops, member, member, false)
	failure(w, nss, member, "ambit authorize "+member+" --to "+ops+" --scope "+member)

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}

// TestAuthorizationDeletedWhileAmbitIsAway holds that nobody has to be there to take back what was projected.
func TestAuthorizationDeletedWhileAmbitIsAway(t *testing.T) {
	w := beds.Alone(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	spec := members(member)
	spec.ManualManagement = true
	nss := w.Scope(ops, spec)

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", "scope"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.Reports(nss, yes, "Reconciled")

	if err := w.Manager.Stop(); err != nil {
		t.Fatal(err)
	}

	w.Remove(authorizationOf("RoleBinding", member, ops, "scope"))
	copiesGo(w, member)
	w.MayNot(ops, "op", member, "get secrets")

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	listedIn(w, ops, "namespace-scope", member, false)
	failure(w, nss, member, "to grant it: ambit authorize "+member)
	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}

// TestAuthorizationEndsWhereAnotherRemains holds that copies stay, the very same, when one of two authorizations ends by each of
// which the account may write them, and go with the last one. Nobody has to be there for either.
func TestAuthorizationEndsWhereAnotherRemains(t *testing.T) {
	w := beds.Alone(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	spec := members(member)
	spec.ManualManagement = true
	nss := w.Scope(ops, spec)

	for _, args := range [][]string{{"--scope", "scope"}, {"--grant-only", "--all"}} {
		if out, code := w.Ambit(append([]string{"authorize", member, "--to", ops}, args...)...); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}

	w.Reports(nss, yes, "Reconciled")

	scoped, general := authorizationOf("RoleBinding", member, ops, "scope"), authorizationOf("RoleBinding", member, ops, "")
	general.SetName(strings.TrimSuffix(general.GetName(), "."))
	w.Eventually("both own the copies", func() error { return ownedBy(w, member, scoped, general) })

	before := uidsOfCopies(w, member)

	if err := w.Manager.Stop(); err != nil {
		t.Fatal(err)
	}

	w.Remove(scoped)
	w.Within(collected, "the other one owns them alone", func() error { return ownedBy(w, member, general) })

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	w.RestIn(ops, member)
	w.Reports(nss, yes, "Reconciled")

	if after := uidsOfCopies(w, member); !slices.Equal(before, after) {
		t.Errorf("the copies were %v, and are %v", before, after)
	}

	if err := w.Manager.Stop(); err != nil {
		t.Fatal(err)
	}

	w.Remove(general)
	copiesGo(w, member)

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	listedIn(w, ops, "namespace-scope", member, false)
	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}

// copiesIn are the copies in a namespace.
func copiesIn(w *testbed.World, namespace string) ([]client.Object, error) {
	var out []client.Object

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := w.Client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{"ambit.dev/scope"}); err != nil {
			return nil, err
		}

		err := meta.EachListItem(list, func(obj runtime.Object) error {
			out = append(out, obj.(client.Object))

			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	return out, nil
}

// ownedBy says whether all copies in a namespace belong to these authorizations, and to nothing else.
func ownedBy(w *testbed.World, namespace string, authorizations ...client.Object) error {
	copies, err := copiesIn(w, namespace)
	if err != nil || len(copies) == 0 {
		return fmt.Errorf("there are %d copies: %w", len(copies), err)
	}

	var want []string
	for _, a := range authorizations {
		want = append(want, a.GetName())
	}

	for _, obj := range copies {
		var is []string
		for _, ref := range obj.GetOwnerReferences() {
			is = append(is, ref.Name)
		}

		if slices.Sort(is); !slices.Equal(is, slices.Sorted(slices.Values(want))) {
			return fmt.Errorf("%s belongs to %v", obj.GetName(), is)
		}
	}

	return nil
}

func uidsOfCopies(w *testbed.World, namespace string) []string {
	w.Helper()

	copies, err := copiesIn(w, namespace)
	if err != nil {
		w.Fatal(err)
	}

	var out []string
	for _, obj := range copies {
		out = append(out, string(obj.GetUID()))
	}

	return slices.Sorted(slices.Values(out))
}

// withdrawn is a delegate's member, served, from which the rights of the delegate are gone, and a part of what was projected.
func withdrawn(w *testbed.World, ops, member string, part func(role string) bool) *operatorv1.NamespaceScope {
	w.Helper()
	w.Grant(member, "in-member", ops, "delegate", append(testbed.InMember(), "get secrets", "get pods")...)

	nss := w.Scope(ops, named("delegate", member))
	w.Reports(nss, yes, "Reconciled")
	listedIn(w, ops, "namespace-scope", member, true)

	w.Remove(testbed.Bind(member, "Role", "in-member", ops, "delegate"))
	w.MayNot(ops, "delegate", member, "create roles")

	bindings := &rbacv1.RoleBindingList{}
	if err := w.Client.List(w.Context(), bindings, client.InNamespace(member), client.HasLabels{"ambit.dev/scope"}); err != nil {
		w.Fatal(err)
	}

	for i := range bindings.Items {
		if part(bindings.Items[i].Annotations["ambit.dev/source"]) {
			w.Remove(&bindings.Items[i])
		}
	}

	return nss
}

// TestMemberThatLosesItsPermissionsLeavesTheList holds that a member whose owner deletes what was projected, all or a part of
// it, is named no longer, since its operators would fail everywhere, and that it comes back by itself.
func TestMemberThatLosesItsPermissionsLeavesTheList(t *testing.T) {
	for name, part := range map[string]func(string) bool{
		"All":  func(string) bool { return true },
		"Part": func(source string) bool { return strings.Contains(source, "/more-") },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			ops, ns := delegated(w, 1, "get secrets")
			w.Grant(ops, "more", ops, "op", "get pods")

			nss := withdrawn(w, ops, ns[0], part)
			listedIn(w, ops, "namespace-scope", ns[0], false)
			failure(w, nss, ns[0], "to grant it: ambit authorize "+ns[0])

			w.Make(testbed.Bind(ns[0], "Role", "in-member", ops, "delegate"))
			w.May(ops, "op", ns[0], "get pods")
			listedIn(w, ops, "namespace-scope", ns[0], true)
			w.Reports(nss, yes, "Reconciled")
		})
	}
}

// TestNewScopeTakesNoMemberFromAnother holds that a scope which was refused everything in a member from the beginning does not
// take it out of the list that it shares with one that is served there, however often it is planned; nor does its status say
// that the list names the member because of it.
func TestNewScopeTakesNoMemberFromAnother(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")
	w.Grant(ns[0], "in-member", ops, "delegate", append(testbed.InMember(), "get secrets")...)
	first := w.Scope(ops, named("delegate", ns[0]))
	w.Reports(first, yes, "Reconciled")

	w.Make(testbed.Account(ops, "extra"))
	w.Grant(ops, "first", ops, "extra", "get pods")

	spec := named("delegate", ns[0])
	spec.ServiceAccountMembers, spec.RestartLabels = []string{"extra"}, map[string]operatorv1.LabelValue{"of": "nobody"}
	second := w.ScopeCalled(ops, "second", spec)
	failure(w, second, ns[0], "get pods")

	w.Grant(ops, "then", ops, "extra", "get services")
	failure(w, second, ns[0], "get pods, services")
	listedIn(w, ops, "namespace-scope", ns[0], true)
	w.Reports(first, yes, "Reconciled")

	if slices.Contains(second.Status.ValidatedMembers, ns[0]) {
		t.Errorf("status is %+v", second.Status)
	}

	w.Grant(ns[0], "for-both", ops, "delegate", "get pods", "get services")
	w.Reports(second, yes, "Reconciled")
}

// TestRefusedChangeKeepsAMemberInTheList holds that what was never there is not missed.
func TestRefusedChangeKeepsAMemberInTheList(t *testing.T) {
	w := begin(t, "delegated")
	ops, ns := delegated(w, 1, "get secrets")

	nss := withdrawn(w, ops, ns[0], func(string) bool { return false })
	w.Grant(ops, "more", ops, "op", "get pods")
	w.Reports(nss, no, "AuthorizationRequired")
	listedIn(w, ops, "namespace-scope", ns[0], true)

	if w.Allowed(ops, "op", ns[0], "get pods") || !w.Allowed(ops, "op", ns[0], "get secrets") {
		t.Error("it holds something else than what it had")
	}
}
