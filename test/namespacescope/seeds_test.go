package namespacescope_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// The documents of the projects that Ambit replaces are applied as they were printed, and have to do what they say there.

// kubectl runs kubectl as a cluster administrator.
func (w *world) kubectl(args ...string) {
	w.Helper()

	args = append([]string{"--kubeconfig", testcluster.Kubeconfig(w)}, args...)
	if out, err := exec.CommandContext(w.Context(), testcluster.Kubectl(), args...).CombinedOutput(); err != nil {
		w.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// apply applies a document in a namespace.
func (w *world) apply(namespace, document string) {
	w.Helper()
	w.kubectl("apply", "--namespace", namespace, "-f", filepath.Join("testdata", document))
	w.identifyAll(namespace)
}

// existing makes sure that there is a namespace whose name a document prescribes. It stays, because other tests may use
// the same one.
func (w *world) existing(name string) string {
	w.Helper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.client.Create(w.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatalf("creating namespace %s: %v", name, err)
	}

	w.letIn(name)

	return name
}

// prescribed creates a namespace of the test's own whose name a document prescribes.
func (w *world) prescribed(name string) string {
	w.Helper()

	if slices.Contains(w.opsNamespaces.all, name) {
		return name
	}

	// An earlier run of the tests may have just left the cluster.
	w.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})

	return w.namespaceCalled(name)
}

// applied returns a NamespaceScope that kubectl made.
func (w *world) applied(namespace, name string) *operatorv1.NamespaceScope {
	w.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.mustGet(nss)
	w.Cleanup(func() { w.discard(nss) })

	return nss
}

func TestSeedCommonService(t *testing.T) {
	w := begin(t)
	ops, cp4i := w.namespace("home"), w.existing("cp4i")
	w.grant(ops, "secretman", "secrets", "get secrets")
	w.apply(ops, "seed-000-secretman.yaml")
	w.running(ops, 1)

	w.apply(ops, "seed-000-common-service.yaml")

	nss := w.applied(ops, "common-service")
	w.ready(nss)
	w.lists(ops, "namespace-scope", ops, cp4i, "default")
	w.may(ops, "secretman", cp4i, "get secrets")
	w.may(ops, "secretman", "default", "get secrets")

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "secretman"}}
	w.restarted(d, 1)

	w.delete(nss)
	w.gone(nss)
	w.mayNot(ops, "secretman", "default", "get secrets")
}

func TestSeedMyOperator(t *testing.T) {
	w := begin(t)
	ops, tenant := w.namespace("home"), w.existing("my-operand-tenant1")
	w.grant(ops, "secretman", "secrets", "get secrets")
	w.apply(ops, "seed-000-secretman.yaml")

	w.apply(ops, "seed-000-my-operator.yaml")

	nss := w.applied(ops, "my-operator")
	w.ready(nss)
	w.lists(ops, "namespace-scope", ops, tenant)
	w.may(ops, "secretman", tenant, "get secrets")
}

func TestSeedEndToEndUseCase(t *testing.T) {
	w := begin(t)

	ops := w.prescribed("ibm-common-services")

	// 1. The services are installed, with a default scope of their own namespace.
	w.grant(ops, "secretman", "secrets", "get secrets")
	w.apply(ops, "seed-001-namespacescope.yaml")

	nss := w.applied(ops, "namespacescope")
	w.ready(nss)
	w.lists(ops, "namespace-scope", ops)

	w.apply(ops, "seed-000-secretman.yaml")
	w.running(ops, 1)

	// 2. A customer creates a namespace. 3. It is appended to the members.
	cloudpak := w.prescribed("cloudpak1")
	w.apply(ops, "seed-001-namespacescope-cloudpak1.yaml")

	w.lists(ops, "namespace-scope", ops, cloudpak)
	w.may(ops, "secretman", cloudpak, "get secrets")
	w.restarted(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "secretman"}}, 1)
	w.ready(nss)
}
