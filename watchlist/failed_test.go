package watchlist

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// faultyMapper answers as a mapper does while discovery is down.
type faultyMapper struct {
	meta.RESTMapper
	fails *atomic.Bool
}

func (m faultyMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.fails.Load() {
		return nil, errors.New("discovery is down")
	}

	return m.RESTMapper.RESTMapping(kind, versions...)
}

// TestNamespaceThatNeverJoined: a namespace for which no cache could be made, and that the list no longer names, is no problem
// any more. Otherwise the operator would not be ready until it is restarted.
func TestNamespaceThatNeverJoined(t *testing.T) {
	t.Parallel()

	names := makeNamespaces(t, 2)
	list, source := newList(t, names[0])

	var fails atomic.Bool

	c, _ := startCache(t, apiServer, list, func(o *cache.Options) { o.Mapper = faultyMapper{o.Mapper, &fails} })

	_, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)

	fails.Store(true)
	source.push(t, strings.Join(names, ","))
	eventually(t, "the namespace that cannot join is reported", func() bool {
		err := list.Ready(nil)

		return err != nil && strings.Contains(err.Error(), names[1])
	})

	source.push(t, names[0])
	eventually(t, "the namespace that is out of the list is forgotten", func() bool { return list.Ready(nil) == nil })
}

// TestWhatCannotBeWatchedIsSaidOnce: a list of all namespaces is called so, and a kind that is watched in two forms is one.
func TestWhatCannotBeWatchedIsSaidOnce(t *testing.T) {
	t.Parallel()

	cfg := rest.CopyConfig(apiServer)
	cfg.Impersonate.UserName = "nobody"

	list, _ := newList(t, all)
	c, _ := startCache(t, cfg, list, nil)

	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))

	for _, object := range []client.Object{&corev1.ConfigMap{}, partial} {
		_, err := c.GetInformer(t.Context(), object, cache.BlockUntilSynced(false))
		must(t, err)
	}

	eventually(t, "both are reported as one", func() bool {
		failed := 0

		for _, s := range list.live().inOrder() {
			s.each(func(_ kindKey, f *feed) {
				if _, err := f.failure(); err != nil {
					failed++
				}
			})
		}

		err := list.Ready(nil)

		return failed == 2 && strings.HasPrefix(err.Error(), "all namespaces: ConfigMap: ") &&
			strings.Count(err.Error(), "ConfigMap: ") == 1
	})
}

// TestForbiddenNamespaceThatLeaves: what is not in the list is no problem, also while a hook tries in vain to clean up there.
func TestForbiddenNamespaceThatLeaves(t *testing.T) {
	t.Parallel()

	cfg := rest.CopyConfig(apiServer)
	cfg.Impersonate.UserName = "nobody"

	list, source := newList(t, makeNamespaces(t, 1)[0])
	c, _ := startCache(t, cfg, list, nil)

	_, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	must(t, err)
	eventually(t, "it is reported", func() bool { return list.Ready(nil) != nil })

	leaves, release := make(chan struct{}), make(chan struct{})
	defer close(release)

	list.OnLeave(func(context.Context, string) error {
		close(leaves)
		<-release

		return nil
	})
	source.push(t, "")
	<-leaves

	if err := list.Ready(nil); err != nil {
		t.Errorf("a namespace that is not in the list: %v", err)
	}
}
