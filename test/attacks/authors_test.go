package attacks_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// A scope that names kube-system is refused to whoever is not as powerful already, and a delegate gets there only what was
// granted to it there, which is nothing.
func TestScopeNamesKubeSystem(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		w := begin(t, "cluster")
		ops := w.Namespace("home")
		mallory := w.Tenant("mallory-"+ops, ops)
		nss := &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}, Spec: testbed.Members("kube-system"),
		}
		refused(w, "a scope with kube-system", mallory.Create(t.Context(), nss))
	})

	t.Run("delegated", func(t *testing.T) {
		w := begin(t, "delegated")
		ops := w.Namespace("home")
		w.Operator(ops, "op", "get secrets")
		w.Make(testbed.Account(ops, "delegate"), testbed.Bind(ops, "ClusterRole", "cluster-admin", ops, "delegate"))

		nss := w.Scope(ops, testbed.DelegatedBy("delegate", "kube-system"))
		w.Reports(nss, no, "AuthorizationRequired")

		if err := denied(w, ops, "op", "kube-system", "get secrets"); err != nil {
			t.Error(err)
		}

		for _, c := range copies(w, "kube-system") {
			t.Errorf("written into kube-system: %s", c)
		}
	})
}

// An account that is deleted is not written as, even though its rights are still there for whoever makes an account of that
// name; and one that was made again by somebody else gets no scope more than it was granted.
func TestDelegateDeletedAndMadeAgain(t *testing.T) {
	w := begin(t, "delegated")
	ops, member, other := w.Namespace("home"), w.Namespace("member"), w.Namespace("other")
	w.Operator(ops, "op", "get secrets")

	w.Delegate(ops, []string{"get secrets"}, member)

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
	w.Reports(nss, yes, "Reconciled")

	w.Remove(testbed.Account(ops, "delegate"))
	w.Reports(nss, no, "AuthorizationRequired")

	// What the gone account could have been used for, it is not.
	w.Grant(ops, "later", ops, "op", "get configmaps")
	w.Grant(member, "later", ops, "delegate", "get configmaps")
	holdsWithout(w, func() error { return denied(w, ops, "op", member, "get configmaps") })

	w.Reports(nss, no, "AuthorizationRequired", "does not exist")

	// Somebody who may make accounts there, and write the scope, makes it again and asks for more.
	mallory := w.Tenant("mallory-"+ops, ops)
	if err := mallory.Create(t.Context(), testbed.Account(ops, "delegate")); err != nil {
		t.Fatal(err)
	}

	w.Reports(nss, yes, "Reconciled")

	err := testbed.Change(t.Context(), mallory, nss, func() { nss.Spec.NamespaceMembers = []string{member, other} })
	if err != nil {
		t.Fatal(err)
	}

	w.Reports(nss, no, "AuthorizationRequired")

	if err := denied(w, ops, "op", other, "get secrets"); err != nil {
		t.Error(err)
	}
}

// holdsWithout checks for a while; unlike holds it needs no second scope.
func holdsWithout(w *testbed.World, check func() error) {
	w.Helper()

	for range 20 {
		if err := check(); err != nil {
			w.Error(err)

			return
		}

		pause()
	}
}

// A namespace that was deleted and made again by another tenant has consented to nothing: what was granted went with it.
func TestMemberDeletedAndMadeAgain(t *testing.T) {
	w := begin(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets"}, member)

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
	w.Reports(nss, yes, "Reconciled")

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member}}
	w.Remove(ns)
	w.Eventually("the namespace goes", w.Gone(ns))
	w.MakeNamespace(member)
	w.Reports(nss, no, "AuthorizationRequired")

	if err := denied(w, ops, "op", member, "get secrets"); err != nil {
		t.Error(err)
	}

	if left := copies(w, member); len(left) > 0 {
		t.Errorf("written into the new namespace: %v", left)
	}
}

// A scope whose author loses their rights is served as it is; they cannot widen it, nor edit it back.
func TestAuthorLosesTheirRights(t *testing.T) {
	w := begin(t, "cluster")
	ops, member, other := w.Namespace("home"), w.Namespace("member"), w.Namespace("other")
	w.Operator(ops, "op", "get secrets")

	author := w.Tenant("author-"+ops, ops)
	power := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "attack-" + ops},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "author-" + ops}},
	}
	w.Make(power)

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"}, Spec: testbed.Members(member)}
	w.Eventually("the author writes a scope", func() error { return author.Create(t.Context(), nss) })
	w.Reports(nss, yes, "Reconciled")

	w.Remove(power)

	for what, spec := range map[string]operatorv1.NamespaceScopeSpec{
		"more members":  testbed.Members(member, other),
		"other members": testbed.Members(other),
		"fewer members": testbed.Members(),
	} {
		w.Eventually("the author may no longer: "+what, func() error {
			if err := author.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
				return err
			}

			nss.Spec = spec

			return forbidden(author.Update(t.Context(), nss, client.DryRunAll))
		})
	}

	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", member, "get secrets")

	if err := denied(w, ops, "op", other, "get secrets"); err != nil {
		t.Error(err)
	}
}
