package namespacescope_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	interval = 50 * time.Millisecond
	// settle is how long a test watches that nothing happens, after it has seen the effect of a later change.
	settle = 300 * time.Millisecond
)

// world is one test's view of the cluster.
type world struct {
	*testing.T
	*system

	namespaces []string
	// late is how much longer the test may have to wait because of what it did.
	late time.Duration
}

// begin starts a test that runs beside the others, in namespaces of its own. When it fails, it prints what the manager
// logged about them.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()

	w := &world{T: t, system: theSystem(t)}

	t.Cleanup(func() {
		if t.Failed() && len(w.namespaces) > 0 {
			t.Logf("the manager's log about %s:\n%s", strings.Join(w.namespaces, ", "), w.logged(w.namespaces...))
		}
	})

	return w
}

// namespace creates a namespace that no other test has. One for scopes is called operator namespace.
func (w *world) namespace(prefix string, labels ...string) string {
	w.Helper()

	if prefix == "home" && w.profile == namespaced {
		return w.newOps(pairs(labels))
	}

	return w.make(prefix+"-"+rand.String(6), labels...)
}

// names makes up names of namespaces that do not exist yet.
func names(n int, prefix string) []string {
	suffix, out := rand.String(6), make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%s-%02d", prefix, suffix, i))
	}

	return out
}

// namespaceCalled creates a namespace that a scope may have named already.
func (w *world) namespaceCalled(name string, labels ...string) string {
	w.Helper()

	if w.profile == namespaced {
		w.late = max(w.late, lateAccess)
	}

	return w.make(name, labels...)
}

func (w *world) make(name string, labels ...string) string {
	w.Helper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs(labels)}}
	w.create(ns)
	w.namespaces = append(w.namespaces, name)
	w.finally(ns)
	w.letIn(name)

	return name
}

// discard deletes what a test leaves behind, after the test's own context has ended.
func (w *world) discard(obj client.Object) {
	if err := w.client.Delete(context.Background(), obj); client.IgnoreNotFound(err) != nil {
		w.Errorf("cleaning up: %v", err)
	}
}

func pairs(labels []string) map[string]string {
	out := map[string]string{}

	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		out[k] = v
	}

	return out
}

func (w *world) create(objs ...client.Object) {
	w.Helper()

	for _, obj := range objs {
		w.identify(obj)

		err := w.client.Create(w.Context(), obj, client.FieldOwner("somebody"))
		if err != nil {
			w.Fatalf("creating %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
}

func (w *world) delete(obj client.Object) {
	w.Helper()

	if _, ok := obj.(*corev1.Namespace); ok && w.profile == namespaced {
		w.late = max(w.late, lateEnd)
	}

	if err := w.client.Delete(w.Context(), obj); err != nil {
		w.Fatalf("deleting %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// get brings an object up to date.
func (w *world) get(obj client.Object) error {
	return w.client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
}

func (w *world) mustGet(obj client.Object) {
	w.Helper()

	if err := w.get(obj); err != nil {
		w.Fatalf("reading %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// change updates the latest version of an object.
func (w *world) change(obj client.Object, edit func()) {
	w.Helper()

	if err := testbed.Change(w.Context(), w.client, obj, edit); err != nil {
		w.Fatalf("changing %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// eventually waits until check finds nothing to complain about.
func (w *world) eventually(what string, check func() error) {
	w.Helper()
	w.within(testbed.Patience+w.late, what, check)
}

func (w *world) within(bound time.Duration, what string, check func() error) {
	w.Helper()

	if err := testbed.Until(bound, check); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// secondBegins waits for the next second. The times of Kubernetes are whole seconds; what a test does at the beginning of
// one mostly falls into the same, which is where the order of events is hard to tell.
func secondBegins() {
	for now := time.Now().Unix(); time.Now().Unix() == now; {
		time.Sleep(10 * time.Millisecond)
	}
}

// steadily fails when check complains at any time while nothing should happen.
func (w *world) steadily(what string, check func() error) {
	w.Helper()

	for end := time.Now().Add(settle); time.Now().Before(end); time.Sleep(interval) {
		if err := check(); err != nil {
			w.Fatalf("%s: %v", what, err)
		}
	}
}

// gone waits until an object no longer exists.
func (w *world) gone(obj client.Object) {
	w.Helper()

	bound := testbed.Patience + w.late

	switch obj.(type) {
	case *corev1.Namespace:
		bound *= 2 // Kubernetes takes its time when many of them end at once.
	case *operatorv1.NamespaceScope, *namespacescopev1alpha1.NamespaceScope:
		bound += restartInterval // Its readers restart first, and may have to wait for their turn.
	}

	w.within(bound, fmt.Sprintf("%T %s goes", obj, client.ObjectKeyFromObject(obj)), func() error {
		if err := w.get(obj); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}

		return nil
	})
}

// right is something that a service account may do in a namespace.
type right struct{ ops, account, namespace, words string }

// on is a right by words such as "get secrets" or "get secrets/one".
func on(ops, account, namespace, words string) right { return right{ops, account, namespace, words} }

func (r right) String() string {
	return fmt.Sprintf("%s/%s: %s in %s", r.ops, r.account, r.words, r.namespace)
}

// allowed asks the API server whether a right holds.
func (w *world) allowed(r right) bool {
	w.Helper()

	allowed, err := w.holds(w.Context(), r)
	if err != nil {
		w.Fatal(err)
	}

	return allowed
}

func (w *world) checkAllowed(r right) error {
	w.Helper()

	if !w.allowed(r) {
		return fmt.Errorf("denied: %s", r)
	}

	return nil
}

func (w *world) checkDenied(r right) error {
	w.Helper()

	if w.allowed(r) {
		return fmt.Errorf("allowed: %s", r)
	}

	return nil
}

// may and mayNot wait until an account has a right, or has it no longer.
func (w *world) may(ops, account, namespace, words string) {
	w.Helper()

	r := on(ops, account, namespace, words)
	w.eventually("a right comes", func() error { return w.checkAllowed(r) })
}

func (w *world) mayNot(ops, account, namespace, words string) {
	w.Helper()

	r := on(ops, account, namespace, words)
	w.eventually("a right goes", func() error { return w.checkDenied(r) })
}

// lists waits until a watch list is exactly this.
func (w *world) lists(ops, configMap string, members ...string) {
	w.Helper()
	w.eventually("the watch list of "+ops, func() error { return w.checkList(ops, configMap, members...) })
}

func (w *world) checkList(ops, configMap string, members ...string) error {
	want := strings.Join(slices.Sorted(slices.Values(members)), ",")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: configMap}}

	if err := w.get(cm); err != nil {
		return err
	}

	if got, found := cm.Data["namespaces"]; !found || got != want {
		return fmt.Errorf("ConfigMap %s has %q, want %q", configMap, got, want)
	}

	return nil
}

// reports waits until a condition of a scope has a status and a reason, for the present generation, and returns it.
func (w *world) reports(
	nss *operatorv1.NamespaceScope, kind string, status metav1.ConditionStatus, reason string,
) metav1.Condition {
	w.Helper()

	var found metav1.Condition

	w.eventually(fmt.Sprintf("condition %s of %s becomes %s", kind, nss.Name, reason), func() error {
		if err := w.get(nss); err != nil {
			return err
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != nss.Generation {
			return fmt.Errorf("generation %d of %s, finalizers %v, status %+v",
				nss.Generation, nss.CreationTimestamp.UTC().Format(time.TimeOnly), nss.Finalizers, nss.Status)
		}

		found = *c

		return nil
	})

	return found
}

func (w *world) ready(nss *operatorv1.NamespaceScope) {
	w.Helper()
	w.reports(nss, "Ready", metav1.ConditionTrue, "Reconciled")
}

func objectsOf(list client.ObjectList) []client.Object {
	var out []client.Object

	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		out = append(out, obj.(client.Object))

		return nil
	})

	return out
}

func (w *world) equal(what string, got, want any) {
	w.Helper()

	if !reflect.DeepEqual(got, want) {
		w.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}
