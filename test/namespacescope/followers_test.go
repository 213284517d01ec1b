package namespacescope_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// followGrace is longer than what a test does meanwhile, on a busy machine.
const followGrace = 30 * time.Second

// takesIn writes what a pod that follows writes once it serves a list, and returns the Lease.
func (w *world) takesIn(pod *corev1.Pod, list string) *coordinationv1.Lease {
	w.Helper()

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: "watchlist-" + string(pod.UID), Labels: map[string]string{"ambit.dev/follows": "true"},
		Annotations:     map[string]string{"ambit.dev/watch-list": defaultList, "ambit.dev/taken-in": scope.TakenIn(list)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
	}}

	there := lease.DeepCopy()
	if w.get(there) == nil {
		w.change(there, func() { there.Annotations = lease.Annotations })

		return there
	}

	w.create(lease)

	return lease
}

// list is the watch list as it is.
func (w *world) list(ops string) string {
	w.Helper()

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: defaultList}}
	w.mustGet(cm)

	return cm.Data["namespaces"]
}

// TestReadersThatFollow: three operators, of which two follow. The scope grows and shrinks; the two are never restarted, and keep
// their permissions in what leaves until both have let go.
func TestReadersThatFollow(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	one, two, other := deployment(ops, "one", readsList), deployment(ops, "two", readsByVolume), deployment(ops, "other", readsList)

	nss := w.scope(ops, "scope", withMarker(members(a)))
	w.ready(nss)
	w.run(one, two, other)
	w.grant(ops, "one", "work", "get pods")
	w.running(ops, 3)

	pods := []*corev1.Pod{w.onePod(ops, "one"), w.onePod(ops, "two")}
	for _, pod := range pods {
		w.takesIn(pod, w.list(ops))
	}

	w.seen(ops, a)

	// A namespace joins.
	w.setMembers(nss, a, b)
	w.lists(ops, defaultList, ops, a, b)

	for _, pod := range pods {
		w.takesIn(pod, w.list(ops))
	}

	w.restarted(other, 1)

	// It leaves.
	copied := w.projectedBinding(ops, "work", b)
	gone := w.deletionOf(copied)

	w.setMembers(nss, a)
	w.lists(ops, defaultList, ops, a)
	w.takesIn(pods[0], w.list(ops))
	w.seen(ops, a)

	if err := w.get(copied.DeepCopy()); err != nil {
		t.Errorf("its permissions went before the second reader had let go: %v", err)
	}

	last := w.takesIn(pods[1], w.list(ops))
	released := time.Now()

	deleted := <-gone
	t.Logf("permissions went %s after the last reader had let go", time.Since(released).Round(time.Millisecond))

	if versionOf(deleted) < versionOf(last.ResourceVersion) {
		t.Errorf("the binding was deleted at version %s, and the last reader let go at %s", deleted, last.ResourceVersion)
	}

	for _, d := range []*appsv1.Deployment{one, two} {
		if err := w.checkRestarts(d, 0); err != nil {
			t.Errorf("a reader that follows: %v", err)
		}
	}

	if err := w.samePods(pods...); err != nil {
		t.Error(err)
	}
}

// TestReaderThatDoesNotLetGo: a Lease that says nothing new, such as one that somebody forged, keeps permissions for the
// grace time.
func TestReaderThatDoesNotLetGo(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	d := deployment(ops, "one", readsList)

	nss := w.scope(ops, "scope", withMarker(members(a, b)))
	w.ready(nss)
	w.run(d)
	w.grant(ops, "one", "work", "get pods")
	w.running(ops, 1)
	w.takesIn(w.onePod(ops, "one"), w.list(ops))
	w.seen(ops, a)

	// What the tenants of a member write there says nothing.
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: b, Name: "watchlist-" + string(w.onePod(ops, "one").UID), Labels: map[string]string{"ambit.dev/follows": "true"},
		Annotations:     map[string]string{"ambit.dev/watch-list": defaultList, "ambit.dev/taken-in": scope.TakenIn(a + "," + ops)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "one", UID: w.onePod(ops, "one").UID}},
	}})

	copied := w.projectedBinding(ops, "work", b)
	gone := w.deletionOf(copied)

	left := time.Now()

	w.setMembers(nss, a)
	w.lists(ops, defaultList, ops, a)
	<-gone

	took := time.Since(left)
	t.Logf("permissions went %s after the list forgot the namespace", took.Round(time.Millisecond))

	// Times of Kubernetes are whole seconds, so it may be one less.
	if took < followGrace-2*time.Second || took > 2*followGrace {
		t.Errorf("the grace time is %s", followGrace)
	}
}

// deletionOf tells the resource version with which a binding is deleted.
func (w *world) deletionOf(obj *rbacv1.RoleBinding) <-chan string {
	w.Helper()

	changes, err := w.client.Watch(w.Context(), &rbacv1.RoleBindingList{}, client.InNamespace(obj.Namespace))
	if err != nil {
		w.Fatal(err)
	}

	out := make(chan string, 1)

	go func() {
		defer changes.Stop()

		for event := range changes.ResultChan() {
			if o, ok := event.Object.(client.Object); ok && event.Type == watch.Deleted && o.GetUID() == obj.UID {
				out <- o.GetResourceVersion()

				return
			}
		}

		out <- "0"
	}()

	return out
}
