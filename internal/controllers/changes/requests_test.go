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
