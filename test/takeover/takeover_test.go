// Package takeover_test points Ambit at a namespace that IBM's operator managed, on a real API server.
package takeover_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/younger"
)

var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

func TestTakeOver(t *testing.T) {
	w := &world{beds.Begin(t, "cluster")}
	ops, a, b, gone := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b"), w.Namespace("gone")

	if err := w.Manager.Kill(); err != nil {
		t.Fatal(err)
	}

	// As IBM's operator left it: the scope with its finalizer and status, the list in an order of its own, copies in members
	// and in a namespace that is none any more, one of a role that is gone, and a reader that it restarted.
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{ops, b, a}})
	w.Change(nss, func() { nss.Finalizers = []string{operatorv1.Finalizer} })

	nss.Status.ValidatedMembers = []string{ops, b, a}
	if err := w.Client.Status().Update(w.Context(), nss); err != nil {
		t.Fatal(err)
	}

	list := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ops, Name: "namespace-scope", Labels: map[string]string{"managedby-namespace-scope": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "operator.ibm.com/v1", Kind: "NamespaceScope", Name: nss.Name, UID: nss.UID,
			}},
		},
		Data: map[string]string{"namespaces": strings.Join([]string{ops, b, a}, ",")},
	}
	w.Make(list)
	younger.Than(w.World, list) // The reader begins after the scope and the list.
	w.Operator(ops, "op", "get secrets")
	w.running(ops)

	var old []client.Object

	for _, member := range []string{a, b, gone} {
		role, binding := testbed.LegacyCopies(ops, "op-role", "op", member)
		old = append(old, role, binding)
	}

	retired, retiredBinding := testbed.LegacyCopies(ops, "retired", "op", a)
	old = append(old, retired, retiredBinding)

	// Somebody copied one of them, labels and all, and somebody changed one.
	stranger, _ := testbed.LegacyCopies(ops, "op-role", "op", a)
	stranger.Name = "my-own"
	_, widened := testbed.LegacyCopies(ops, "other", "op", b)
	widened.Subjects = append(widened.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"})
	unlabelled, _ := testbed.LegacyCopies(ops, "third", "op", b)
	unlabelled.Labels["app.kubernetes.io/managed-by"] = "alice"

	w.Make(append(old, stranger, widened, unlabelled)...)
	w.May(ops, "op", a, "get secrets")
	w.May(ops, "op", b, "get secrets")

	pods := w.pods(ops)
	gaps := w.Gaps(ops, "op", "get secrets", a, b)

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	for _, obj := range old {
		w.Eventually(fmt.Sprintf("%T %s goes", obj, client.ObjectKeyFromObject(obj)), w.Gone(obj))
	}

	w.RestIn(ops, a, b)

	if n, asked := gaps(); n > 0 || asked < 20 {
		t.Errorf("%d of %d questions were answered with no", n, asked)
	}

	w.MayNot(ops, "op", gone, "get secrets")
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	for _, obj := range []client.Object{stranger, widened, unlabelled} {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Errorf("what is not IBM's stays: %v", err)
		}
	}

	w.leavesAlone(nss, "Role "+a+"/my-own", "RoleBinding "+b+"/"+widened.Name, "Role "+b+"/"+unlabelled.Name)

	if after := w.pods(ops); after != pods {
		t.Errorf("readers were restarted in vain: %s became %s", pods, after)
	}

	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(list), list)
	if err != nil || list.Data["namespaces"] != sorted(ops, a, b) {
		t.Errorf("the list is %q, %v", list.Data["namespaces"], err)
	}

	// The same resource goes as it would have gone before.
	w.Remove(nss)
	w.MayNot(ops, "op", a, "get secrets")

	// The garbage collector takes the list, which is the scope's by its owner reference. It learns of new kinds every half
	// minute, and this cluster is new.
	for _, obj := range []client.Object{nss, list} {
		w.Within(90*time.Second, fmt.Sprintf("the collector takes %T", obj), w.Gone(obj))
	}
}

type world struct{ *testbed.World }

// leavesAlone waits until the status names what is left alone, and says that all else is taken over. The scope is ready before
// that.
func (w *world) leavesAlone(nss *operatorv1.NamespaceScope, names ...string) {
	w.Helper()
	w.Eventually("all else is taken over", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, "TakenOver")
		if c == nil || c.Reason != "LeftAlone" {
			return fmt.Errorf("it says %+v", c)
		}

		for _, name := range names {
			if !strings.Contains(c.Message, name) {
				return fmt.Errorf("nothing about %s in %q", name, c.Message)
			}
		}

		return nil
	})
}

// running waits until the operator's pod runs.
func (w *world) running(ops string) {
	w.Helper()

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "op"}}
	w.Eventually("the operator runs", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}

		if d.Status.ReadyReplicas != 1 {
			return fmt.Errorf("%+v", d.Status)
		}

		return nil
	})
}

// pods are the names of the pods of a namespace.
func (w *world) pods(ops string) string {
	w.Helper()

	var pods corev1.PodList
	if err := w.Client.List(w.Context(), &pods, client.InNamespace(ops)); err != nil {
		w.Fatal(err)
	}

	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}

	return sorted(names...)
}

func sorted(names ...string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }
