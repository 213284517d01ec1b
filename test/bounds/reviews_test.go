package bounds_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestMemberThatGrantsTooMuchHoldsUpNoOther: who administers one member binds a Role as large as an object can be hundreds of
// times to the account of the scope that serves it, so that the API server has hundreds of megabytes to say about what that
// account may do there. The other members are served meanwhile, and Ambit stays small.
func TestMemberThatGrantsTooMuchHoldsUpNoOther(t *testing.T) {
	const times = 250

	w := beds.Quiet(t, "delegated")
	nss, evil, joins := memberOf(w)

	mallory := w.Tenant("mallory-"+evil, evil)
	if err := mallory.Create(t.Context(), testbed.Large(evil, 0)); err != nil {
		t.Fatal(err)
	}

	many(w, mallory, times, func(i int) client.Object {
		b := testbed.Bind(evil, "Role", "large-0", nss.Namespace, "delegate")
		b.Name = fmt.Sprintf("b%d", i)

		return b
	})
	servedBeside(w, nss, evil, joins)
}

// TestMemberThatGrantsMuchIsServed: what the API server says of an account may be more than Ambit reads. The member is served all
// the same, as far as the API server lets it.
func TestMemberThatGrantsMuchIsServed(t *testing.T) {
	const times = 6

	w := beds.Quiet(t, "delegated")
	nss, large, _ := memberOf(w)

	w.Make(testbed.Large(large, 0))
	many(w, w.Client, times, func(i int) client.Object {
		b := testbed.Bind(large, "Role", "large-0", nss.Namespace, "delegate")
		b.Name = fmt.Sprintf("b%d", i)

		return b
	})
	w.Change(nss, func() { nss.Spec.NamespaceMembers = append(nss.Spec.NamespaceMembers, large) })
	w.May(nss.Namespace, "op", large, "get secrets")
	w.Reports(nss, yes, "Reconciled")

	// What was not granted there is refused.
	w.Grant(nss.Namespace, "more", nss.Namespace, "op", "get services")
	w.Reports(nss, no, "AuthorizationRequired", large)

	if w.Allowed(nss.Namespace, "op", large, "get services") {
		t.Error("the operator may do what nobody granted")
	}
}

// TestForgedAuthorizationsCostLittle: who administers one member fills it with Roles as large as they can be that look like
// authorizations to the account of the scope that serves it. Ambit looks for authorizations before it writes there first.
func TestForgedAuthorizationsCostLittle(t *testing.T) {
	const large = 100

	w := beds.Quiet(t, "delegated")
	nss, evil, joins := memberOf(w)
	forged := func(obj client.Object, name string) client.Object {
		obj.SetName("ambit-authorized-from-" + nss.Namespace + "." + name)
		obj.SetLabels(map[string]string{
			"app.kubernetes.io/managed-by": "ambit-authorize", "ambit.dev/authorized-for": nss.Namespace,
		})

		return obj
	}

	mallory := w.Tenant("mallory-"+evil, evil)
	many(w, mallory, 2, func(i int) client.Object {
		return forged(testbed.Bind(evil, "ClusterRole", "view", nss.Namespace, "op"), fmt.Sprintf("b%d", i))
	})
	flood(w, mallory, large, 3, func(i int) client.Object { return forged(testbed.Large(evil, 3*i), fmt.Sprintf("r%d", i)) })
	servedBeside(w, nss, evil, joins)
}

// memberOf makes a scope with one member, and a namespace each that will be a hostile member and one that joins after it.
func memberOf(w *testbed.World) (nss *operatorv1.NamespaceScope, evil, joins string) {
	w.Helper()

	home, member := w.Namespace("home"), w.Namespace("member")
	evil, joins = w.Namespace("evil"), w.Namespace("joins")

	w.Operator(home, "op", "get secrets")
	w.Delegate(home, []string{"get secrets"}, member, evil, joins)

	nss = w.Scope(home, testbed.DelegatedBy("delegate", member))
	w.Reports(nss, yes, "Reconciled")

	return nss, evil, joins
}

// servedBeside checks that a namespace joins and leaves a scope while another member is hostile.
func servedBeside(w *testbed.World, nss *operatorv1.NamespaceScope, evil, joins string) {
	w.Helper()

	member := nss.Spec.NamespaceMembers[0]
	edit := func(names ...string) func() {
		return func() { w.Change(nss, func() { nss.Spec.NamespaceMembers = append([]string{member, evil}, names...) }) }
	}

	for range 3 {
		w.Serves(edit(joins), func() bool { return w.Allowed(nss.Namespace, "op", joins, "get secrets") })
		w.Serves(edit(), func() bool { return !w.Allowed(nss.Namespace, "op", joins, "get secrets") })
	}

	bounded(w)

	// It would go on asking about the hostile member, and keep the API server busy beside the tests that come.
	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}
