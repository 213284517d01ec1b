package delegates_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestTwoInstallationsLeaveEachOtherAlone has a second Ambit run in a namespace of its own. Both project into one member, and the
// first one into the namespace of the second, too. What either of them makes or takes away is nothing to the other.
func TestTwoInstallationsLeaveEachOtherAlone(t *testing.T) {
	w := begin(t, "namespaced")
	defaultScope(w) // It is made only where there is no scope yet.

	ops, neighbour, member := embedded.Namespace, w.Namespace("neighbour"), w.Namespace("member")
	installBeside(w, neighbour)

	ours := scopeOf(w, ops, member, member, neighbour)
	theirs := scopeOf(w, neighbour, member, member)

	for _, grant := range [][2]string{{member, ops}, {neighbour, ops}, {member, neighbour}} {
		if out, code := w.Ambit("authorize", grant[0], "--to", grant[1], "--scope", member); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}

	w.Reports(ours, yes, "Reconciled")
	w.Reports(theirs, yes, "Reconciled")
	w.May(ops, member, member, "get secrets")
	w.May(ops, member, neighbour, "get secrets")
	w.May(neighbour, member, member, "get secrets")

	before := versionsOf(w, ours, member, neighbour)

	w.Remove(theirs)
	w.Eventually("the scope of the second goes", w.Gone(theirs))
	w.MayNot(neighbour, member, member, "get secrets")

	if len(versionsOf(w, theirs, member)) > 0 {
		t.Errorf("the second leaves %v", versionsOf(w, theirs, member))
	}

	if after := versionsOf(w, ours, member, neighbour); len(before) != 4 || !maps.Equal(before, after) {
		t.Errorf("of the first there was %v, and is %v", before, after)
	}

	w.Remove(ours)
	w.Eventually("the scope of the first goes", w.Gone(ours))
	w.MayNot(ops, member, neighbour, "get secrets")
}

// scopeOf makes a scope and an operator of a name, with a list of its own.
func scopeOf(w *testbed.World, ops, name string, namespaces ...string) *operatorv1.NamespaceScope {
	w.Helper()
	w.Operator(ops, name, "get secrets")

	spec := members(namespaces...)
	spec.ConfigmapName, spec.ServiceAccountMembers = name, []string{name}
	spec.RestartLabels = map[string]operatorv1.LabelValue{"only": "named"}

	return w.ScopeCalled(ops, name, spec)
}

// versionsOf are the versions of what was projected for a scope, by kind, namespace and name.
func versionsOf(w *testbed.World, nss *operatorv1.NamespaceScope, namespaces ...string) map[string]string {
	w.Helper()

	out := map[string]string{}

	for _, namespace := range namespaces {
		for kind, list := range map[string]*metav1.PartialObjectMetadataList{"RoleList": {}, "RoleBindingList": {}} {
			list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))

			if err := w.Client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{"ambit.dev/scope"}); err != nil {
				w.Fatal(err)
			}

			for i := range list.Items {
				o := &list.Items[i]
				if o.Annotations["ambit.dev/owner"] == "NamespaceScope/"+nss.Namespace+"/"+nss.Name {
					out[kind+" "+namespace+"/"+o.Name] = o.ResourceVersion
				}
			}
		}
	}

	return out
}

// installBeside installs a second Ambit of the profile namespaced, and runs it until the test ends.
func installBeside(w *testbed.World, namespace string) {
	w.Helper()
	w.Make(testbed.Account(namespace, embedded.ServiceAccount),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ambit-names"}})

	for _, name := range []string{"ambit-namespaced", "ambit-names"} {
		role := &rbacv1.Role{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: embedded.Namespace, Name: name}, role); err != nil {
			w.Fatal(err)
		}

		w.Make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: role.Rules},
			testbed.Bind(namespace, "Role", name, namespace, embedded.ServiceAccount))
	}

	as := w.ConfigOf(namespace, embedded.ServiceAccount)
	config := api.NewConfig()
	config.Clusters["it"] = &api.Cluster{
		Server: as.Host, CertificateAuthority: as.CAFile, CertificateAuthorityData: as.CAData,
	}
	config.AuthInfos["it"] = &api.AuthInfo{Token: as.BearerToken}
	config.Contexts["it"] = &api.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"

	kubeconfig := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		w.Fatal(err)
	}

	manager := exec.CommandContext(w.Context(), w.Program, "manager", "--kubeconfig", kubeconfig, "--namespaces="+namespace,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--restart-interval=1s")
	manager.Env = append(os.Environ(), "OPERATOR_NAMESPACE="+namespace)

	if err := manager.Start(); err != nil {
		w.Fatal(err)
	}

	w.Cleanup(func() { _ = manager.Wait() })
}
