package watchlist

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestNoOtherConfigMapIsBelieved: a server that does not honour the field selector, such as a proxy, sends other ConfigMaps of
// the namespace, too. Neither what they hold nor that they go changes the list, and they do not stand for one that is missing.
func TestNoOtherConfigMapIsBelieved(t *testing.T) {
	t.Parallel()

	another, scope := configMap("another", "c,d"), configMap("scope", "a,b")

	for name, tc := range map[string]struct {
		there []corev1.ConfigMap
		first string
	}{
		"Exists":       {[]corev1.ConfigMap{*another, *scope}, "a,b"},
		"DoesNotExist": {[]corev1.ConfigMap{*another}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			changes := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
			for i := range tc.there {
				changes.Add(&tc.there[i])
			}

			listed := configMap("", "")
			listed.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			changes.Action(watch.Bookmark, listed)

			s := &configMapSource{namespace: "ops", name: "scope", lw: &toolscache.ListWatch{
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return changes, nil },
			}}

			said := make(chan namespaces, 10)

			go s.follow(t.Context(), func(list namespaces, err error) {
				if err != nil {
					t.Error(err)
				}

				said <- list
			})

			for i, want := range []string{tc.first, "e"} {
				list, err := parse(want)
				if err != nil {
					t.Fatal(err)
				}

				if got := <-said; !slices.Equal(got.names, list.names) {
					t.Errorf("list %d is %v, want %v", i, got, list)
				}

				changes.Modify(configMap("another", "f"))
				changes.Delete(another)
				changes.Modify(configMap("scope", "e"))
			}
		})
	}
}

func configMap(name, list string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, ResourceVersion: "1"}, Data: map[string]string{key: list},
	}
}
