package follow_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/follow"
)

// counted counts what reaches the cluster, and answers reviews as a test wants. What the API server itself decides is tested on
// one, in test/page.
type counted struct {
	client.WithWatch

	mu     sync.Mutex
	lists  int
	gets   int
	denied map[string]bool
}

func newCounted(denied ...string) *counted {
	c := &counted{denied: map[string]bool{}}
	for _, verb := range denied {
		c.denied[verb] = true
	}

	count := func(n *int) {
		c.mu.Lock()
		defer c.mu.Unlock()

		*n++
	}

	mapper := testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)
	built := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithRESTMapper(mapper).Build()
	c.WithWatch = interceptor.NewClient(built, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			if review, is := obj.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = !c.denied[review.Spec.ResourceAttributes.Verb]

				return nil
			}

			return to.Create(ctx, obj, options...)
		},
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			count(&c.lists)

			return to.List(ctx, list, options...)
		},
		Get: func(
			ctx context.Context, to client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption,
		) error {
			count(&c.gets)

			return to.Get(ctx, key, obj, options...)
		},
		Watch: func(
			ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption,
		) (watch.Interface, error) {
			w, err := to.Watch(ctx, list, options...)
			if err == nil {
				context.AfterFunc(ctx, w.Stop) // As that of an API server ends.
			}

			return w, err
		},
	})

	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
}

func names(t *testing.T, c client.Client) []string {
	t.Helper()

	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, client.InNamespace("team-a")); err != nil {
		t.Fatal(err)
	}

	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}

	return out
}

// TestWatchedIsListedOnce holds that looking again costs the API server nothing, and shows what changed.
func TestWatchedIsListedOnce(t *testing.T) {
	t.Parallel()

	// A busy machine may take longer than that.
	synctest.Test(t, func(t *testing.T) {
		cluster := newCounted()
		c := follow.New(t.Context(), follow.NewGate(cluster))

		if got := names(t, c); len(got) != 0 {
			t.Fatalf("an empty namespace has %v", got)
		}

		if err := cluster.Create(t.Context(), configMap("one")); err != nil {
			t.Fatal(err)
		}

		began := time.Now()
		if err := c.Wait(t.Context()); err != nil || time.Since(began) > 2*time.Second {
			t.Fatalf("a change is told after %s: %v", time.Since(began), err)
		}

		for range 20 {
			if got := names(t, c); len(got) != 1 || got[0] != "one" {
				t.Fatalf("after the change there is %v", got)
			}
		}

		if cluster.lists != 1 {
			t.Errorf("%d lists, want one", cluster.lists)
		}
	})
}

// TestUnwatchedIsListedAgain holds that who may list and not watch sees a change in two seconds, at a bounded cost.
func TestUnwatchedIsListedAgain(t *testing.T) {
	t.Parallel()

	// A busy machine may take longer than that.
	synctest.Test(t, func(t *testing.T) {
		cluster := newCounted("watch")
		c := follow.New(t.Context(), follow.NewGate(cluster))
		names(t, c)

		if err := cluster.Create(t.Context(), configMap("one")); err != nil {
			t.Fatal(err)
		}

		for range 50 {
			names(t, c)
		}

		if cluster.lists != 1 {
			t.Errorf("%d lists at once, want one", cluster.lists)
		}

		began := time.Now()
		if err := c.Wait(t.Context()); err != nil || time.Since(began) > 2*time.Second {
			t.Fatalf("it is due after %s: %v", time.Since(began), err)
		}

		time.Sleep(10 * time.Millisecond)

		if got := names(t, c); len(got) != 1 || cluster.lists != 2 {
			t.Errorf("there is %v, after %d lists", got, cluster.lists)
		}
	})
}

// TestNobodyListsItAnyMore holds that a list that is not watched, and that nobody asks for again, is not due for good: whoever
// waits would look at everything without end.
func TestNobodyListsItAnyMore(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c := follow.New(t.Context(), follow.NewGate(newCounted("watch")))
		names(t, c)

		began := time.Now()

		for range 4 {
			if err := c.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		if took := time.Since(began); took < 20*time.Second {
			t.Errorf("whoever waits four times is told of something after %s", took)
		}
	})
}

// TestDeniedIsNotAsked holds that what the caller may not see is not asked for, and fails as if it had been.
func TestDeniedIsNotAsked(t *testing.T) {
	t.Parallel()

	cluster := newCounted("list", "get")
	c := follow.New(t.Context(), follow.NewGate(cluster))

	if err := c.List(t.Context(), &corev1.ConfigMapList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list that is denied: %v", err)
	}

	if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, &corev1.Namespace{}); !apierrors.IsForbidden(err) {
		t.Errorf("an object that is denied: %v", err)
	}

	if cluster.lists+cluster.gets != 0 {
		t.Errorf("%d lists and %d objects were asked for", cluster.lists, cluster.gets)
	}
}

// TestNothingIsWritten holds that there is no way to write through it.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()

	c := follow.New(t.Context(), follow.NewGate(newCounted()))
	obj := configMap("one")

	for what, err := range map[string]error{
		"create": c.Create(t.Context(), obj), "update": c.Update(t.Context(), obj), "delete": c.Delete(t.Context(), obj),
		"patch":  c.Patch(t.Context(), obj, client.MergeFrom(obj.DeepCopy())),
		"status": c.Status().Update(t.Context(), obj), "subresource": c.SubResource("eviction").Create(t.Context(), obj, obj),
		"delete all": c.DeleteAllOf(t.Context(), obj),
	} {
		if !errors.Is(err, follow.ErrReads) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDryRunsKeepNothing holds that plans write by dry runs alone, of what the caller may write, and see what is there now.
func TestDryRunsKeepNothing(t *testing.T) {
	t.Parallel()

	c := follow.New(t.Context(), follow.NewGate(newCounted("delete"))).DryRuns()
	obj := configMap("one")

	for what, err := range map[string]error{
		"create": c.Create(t.Context(), obj), "delete": c.Delete(t.Context(), obj),
		"update": c.Update(t.Context(), obj, client.DryRunAll),
		"patch":  c.Patch(t.Context(), obj, client.MergeFrom(obj.DeepCopy())),
		"status": c.Status().Update(t.Context(), obj), "delete all": c.DeleteAllOf(t.Context(), obj),
	} {
		if !errors.Is(err, follow.ErrReads) {
			t.Errorf("%s: %v", what, err)
		}
	}

	if err := c.Create(t.Context(), obj.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a dry run: %v", err)
	}

	if err := c.Delete(t.Context(), obj, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a dry run of what is denied: %v", err)
	}

	if got := names(t, c); len(got) != 0 {
		t.Errorf("dry runs left %v", got)
	}
}

// TestKindsAreKeptApart holds that objects of one name that are read without types are not taken for each other.
func TestKindsAreKeptApart(t *testing.T) {
	t.Parallel()

	cluster := newCounted()
	if err := cluster.Create(t.Context(), configMap("one")); err != nil {
		t.Fatal(err)
	}

	c := follow.New(t.Context(), follow.NewGate(cluster))

	for kind, want := range map[string]bool{"ConfigMap": true, "Secret": false} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))

		if err := c.Get(t.Context(), client.ObjectKeyFromObject(configMap("one")), obj); (err == nil) != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestActingAs holds whom a caller is asked to be allowed to act as.
func TestActingAs(t *testing.T) {
	t.Parallel()

	for denied, want := range map[string]bool{"impersonate": false, "get": true} {
		gate := follow.NewGate(newCounted(denied))

		for _, user := range []string{"jane", "system:serviceaccount:ops:ambit"} {
			if may, err := gate.MayActAs(t.Context(), user); may != want || err != nil {
				t.Errorf("%s is denied; as %s: %t, %v", denied, user, may, err)
			}
		}
	}
}
