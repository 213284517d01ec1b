package delegates_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestAmbitsOwnNamespaceGoes deletes the namespace that holds both Ambit's own account and its scopes. With the scopes first,
// everything goes. Without, Kubernetes may take the account before the scopes, which then wait with what they projected: that is
// a limit, and docs/install.md says how to end it.
func TestAmbitsOwnNamespaceGoes(t *testing.T) {
	for name, scopesFirst := range map[string]bool{"scopes first": true, "namespace first": false} {
		t.Run(name, func(t *testing.T) {
			w := beds.Own(t, "namespaced")
			ops, member := embedded.Namespace, w.Namespace("member")
			w.Operator(ops, member, "get secrets")

			nss := defaultScope(w)
			addMember(w, nss, member)

			if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", nss.Name); code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}

			listed(w, member, true)

			if scopesFirst {
				w.Remove(nss)
				w.Eventually("the scope goes", w.Gone(nss))
			}

			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ops}}
			w.Remove(ns)

			if !scopesFirst {
				w.Eventually("Ambit's account goes", w.Gone(testbed.Account(ops, "ambit")))
				endByHand(w, nss, member)
			}

			w.Eventually("the namespace goes", w.Gone(ns))
			w.MayNot(ops, member, member, "get secrets")

			var left rbacv1.RoleList
			if err := w.Client.List(t.Context(), &left, client.InNamespace(member), client.HasLabels{"ambit.dev/scope"}); err != nil ||
				len(left.Items) > 0 {
				t.Errorf("left behind: %v (%v)", left.Items, err)
			}
		})
	}
}

// endByHand is what docs/install.md says. What is projected goes before the finalizer, by which it can be found.
func endByHand(w *testbed.World, nss *operatorv1.NamespaceScope, member string) {
	w.Helper()

	for _, command := range []string{
		"delete roles,rolebindings -n " + member + " -l ambit.dev/scope",
		"delete roles,rolebindings -n " + member + " -l ambit.dev/authorized-for=" + nss.Namespace,
		"patch namespacescopes.operator.ibm.com " + nss.Name + " -n " + nss.Namespace +
			` --type=merge -p {"metadata":{"finalizers":null}}`,
	} {
		out, err := w.Cluster.Kubectl(w.Context(), strings.Fields(command)...)
		// Where Ambit was faster than Kubernetes, there is nothing left to do.
		if err != nil && !strings.Contains(out+err.Error(), "NotFound") {
			w.Fatalf("%s: %v: %s", command, err, out)
		}
	}
}
