package changes

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambit-k8s/ambit/internal/scope"
)

func (q *queue) Add(key scope.Key) { q.added = append(q.added, key.Namespace) }

// TestRequestsCountAsAsked: what goes to the queue by itself is not answered by a reconcile that began before, either.
func TestRequestsCountAsAsked(t *testing.T) {
	t.Parallel()

	key := scope.NamespaceScopes.In("ops")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace}}
	c := New()
	toKey := ToKey(c, key.Family, func(client.Object) {})
	requesting := Requesting(c, func(context.Context, client.Object) []scope.Key { return []scope.Key{key} })

	for change, handle := range map[string]func(q *queue){
		"created":   func(q *queue) { toKey.Create(t.Context(), event.CreateEvent{Object: obj}, q) },
		"updated":   func(q *queue) { toKey.Update(t.Context(), event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}, q) },
		"deleted":   func(q *queue) { toKey.Delete(t.Context(), event.DeleteEvent{Object: obj}, q) },
		"requested": func(q *queue) { requesting.Create(t.Context(), event.CreateEvent{Object: obj}, q) },
	} {
		c.Dequeue(key)

		q := &queue{}
		if handle(q); !c.Asked(key) || len(q.take()) == 0 {
			t.Errorf("%s: asked %t", change, c.Asked(key))
		}
	}
}

// TestResourceThatIsWrittenWithoutAnEnd holds that it is planned for about once a second, and keeps no worker busy all the time.
func TestResourceThatIsWrittenWithoutAnEnd(t *testing.T) {
	t.Parallel()

	key := scope.NamespaceScopes.In("ops")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace}}
	later, atOnce := &queue{}, &queue{}
	c := New()
	c.Start(key.Family, later)

	toKey := ToKey(c, key.Family, func(client.Object) {})
	handles := []func(){
		func() { toKey.Update(t.Context(), event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}, atOnce) },
		func() { toKey.Delete(t.Context(), event.DeleteEvent{Object: obj}, atOnce) },
	}

	for range busyPlans {
		handles[0]()
		c.Dequeue(key)
	}

	if now, waits := len(atOnce.take()), len(later.take()); now != busyPlans || waits > 0 {
		t.Fatalf("%d changes are planned for at once, and %d wait", now, waits)
	}

	c.Dequeue(key)

	for _, handle := range handles {
		handle()
	}

	if now, waits := len(atOnce.take()), len(later.take()); now > 0 || waits == 0 || later.wait != debounce {
		t.Errorf("after those, %d changes are planned for at once, and %d wait for %v", now, waits, later.wait)
	}

	if !c.Asked(key) {
		t.Error("what waits is not asked for")
	}
}
