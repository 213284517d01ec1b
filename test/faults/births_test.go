package faults_test

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// births are the resource versions with which pods came into being. The times of Kubernetes are whole seconds: whether a reader
// or its list was first is known within a second to those only who saw it, as the manager does.
type births struct {
	mu       sync.Mutex
	versions map[types.UID]uint64
}

// follow notes births until the context ends. Those while the API server is away stay unknown.
func (b *births) follow(ctx context.Context, c client.WithWatch) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		b.once(ctx, c)
	}
}

func (b *births) once(ctx context.Context, c client.WithWatch) {
	var there corev1.PodList
	if err := c.List(ctx, &there); err != nil {
		return
	}

	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: there.ResourceVersion}}

	events, err := c.Watch(ctx, &corev1.PodList{}, from)
	if err != nil {
		return
	}
	defer events.Stop()

	for e := range events.ResultChan() {
		if pod, is := e.Object.(*corev1.Pod); is && e.Type == watch.Added {
			b.mu.Lock()
			b.versions[pod.UID] = scope.ParseVersion(pod.ResourceVersion)
			b.mu.Unlock()
		}
	}
}

// settle tells the facts what was seen. A reader that was not, and shares the second of its list, counts as the later one:
// whether the manager is still in doubt about it is not to be seen from outside.
func (b *births) settle(f *facts.Facts) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for i := range f.OperatorNamespace.Pods {
		pod := &f.OperatorNamespace.Pods[i]
		if pod.BornAt = b.versions[pod.UID]; pod.BornAt != 0 {
			continue
		}

		for _, list := range pod.Reads {
			if cm := f.OperatorNamespace.ConfigMaps[list]; cm.Ours() && pod.InDoubt(cm.ChangedAt()) {
				pod.BornAt = read.Later
			}
		}
	}
}
