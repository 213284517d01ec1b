package delegates_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// defaultScope is the scope that the namespaced profile begins with. All tests of the profile add members to it, since
// Ambit serves only its own namespace.
func defaultScope(w *testbed.World) *operatorv1.NamespaceScope {
	w.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: "namespacescope"}}
	w.Eventually("the default scope", func() error {
		return w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss)
	})

	return nss
}

func addMember(w *testbed.World, nss *operatorv1.NamespaceScope, names ...string) {
	w.Helper()
	w.Change(nss, func() { nss.Spec.NamespaceMembers = append(nss.Spec.NamespaceMembers, names...) })
}

func removeMember(w *testbed.World, nss *operatorv1.NamespaceScope, name string) {
	w.Helper()
	w.Change(nss, func() {
		nss.Spec.NamespaceMembers = slices.DeleteFunc(nss.Spec.NamespaceMembers, func(m string) bool { return m == name })
	})
}

// listed waits until the watch list names a namespace, or does not.
func listed(w *testbed.World, namespace string, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s in the watch list: %t", namespace, want), func() error {
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: embedded.Namespace, Name: "namespace-scope"}

		if err := w.Client.Get(w.Context(), key, cm); err != nil {
			return err
		}

		if got := slices.Contains(strings.Split(cm.Data["namespaces"], ","), namespace); got != want {
			return fmt.Errorf("the list is %q", cm.Data["namespaces"])
		}

		return nil
	})
}

func TestDefaultScope(t *testing.T) {
	w := begin(t, "namespaced")
	nss := defaultScope(w)

	if !slices.Contains(nss.Spec.NamespaceMembers, embedded.Namespace) {
		t.Errorf("members %v", nss.Spec.NamespaceMembers)
	}

	listed(w, embedded.Namespace, true)
}

// TestAccessComesAndGoes holds that a member is served from the moment its owner lets Ambit in, and is out of the list and
// told of once the owner takes that back.
func TestAccessComesAndGoes(t *testing.T) {
	w := begin(t, "namespaced")
	ops, member := embedded.Namespace, w.Namespace("member")
	w.Operator(ops, member, "get secrets")

	nss := defaultScope(w)
	addMember(w, nss, member)
	w.Eventually("the closed door is told", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		for _, f := range nss.Status.FailedMembers {
			if f.Namespace == member && f.Reason == "AuthorizationRequired" &&
				strings.HasSuffix(f.Message, "ambit authorize "+member+" --to "+ops+" --scope namespacescope") {
				return nil
			}
		}

		return fmt.Errorf("status %+v", nss.Status)
	})

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", "namespacescope"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.May(ops, member, member, "get secrets")
	listed(w, member, true)

	// Drift is seen through the door.
	role := projectedRole(w, member)
	w.Change(role, func() { role.Rules = nil })
	w.May(ops, member, member, "get secrets")

	// The owner takes the grant away, without a word to the scope.
	grant := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: member, Name: "ambit-authorized-from-" + ops + ".namespacescope",
	}}
	w.Remove(grant)
	listed(w, member, false)

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", "namespacescope"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	listed(w, member, true)

	removeMember(w, nss, member)
	w.MayNot(ops, member, member, "get secrets")
	listed(w, member, false)
}

func projectedRole(w *testbed.World, namespace string) *rbacv1.Role {
	w.Helper()

	found := &rbacv1.Role{}

	w.Eventually("a projected Role in "+namespace, func() error {
		roles := &rbacv1.RoleList{}
		if err := w.Client.List(w.Context(), roles, client.InNamespace(namespace), client.HasLabels{"ambit.dev/scope"}); err != nil {
			return err
		}

		if len(roles.Items) == 0 {
			return errors.New("there is none")
		}

		found = &roles.Items[0]

		return nil
	})

	return found
}

// TestRefusedAccessIsNotRetriedHot counts requests by the audit log.
func TestRefusedAccessIsNotRetriedHot(t *testing.T) {
	w := begin(t, "namespaced")

	var closed []string
	for range 10 {
		closed = append(closed, w.Namespace("closed"))
	}

	nss := defaultScope(w)
	addMember(w, nss, closed...)
	w.Eventually("all are told", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		n := 0

		for _, f := range nss.Status.FailedMembers {
			if slices.Contains(closed, f.Namespace) {
				n++
			}
		}

		if n < len(closed) {
			return fmt.Errorf("%d of %d", n, len(closed))
		}

		return nil
	})

	// The pauses grow to five seconds. With two of four seconds, no ten seconds have more than three requests.
	const pause, most = 4 * time.Second, 10

	w.Eventually("each is asked about less and less often", func() error {
		requests := w.Requests()

		for _, ns := range closed {
			asked := asked(requests, ns)

			n := len(asked)
			if n > most {
				w.Fatalf("%d requests about %s, at %v, before the pauses were long", n, ns, asked)
			}

			if n < 3 || asked[n-1].Sub(asked[n-2]) < pause || asked[n-2].Sub(asked[n-3]) < pause {
				return fmt.Errorf("requests about %s at %v", ns, asked)
			}
		}

		return nil
	})
}

// asked is when something about a namespace was asked for, in order.
func asked(requests []testbed.Request, namespace string) []time.Time {
	var times []time.Time

	for i := range requests {
		if requests[i].Object.Namespace == namespace {
			times = append(times, requests[i].Received)
		}
	}

	slices.SortFunc(times, time.Time.Compare)

	return times
}
