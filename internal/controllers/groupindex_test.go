package controllers

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/read"
)

func TestIndexAnnotations(t *testing.T) {
	t.Parallel()

	got, left := indexAnnotations(map[string]string{"a": "writer", "b": "other"}, nil)
	if left != 0 || len(got) != 2 || got["account.ambit.dev/a"] != "writer" || got["account.ambit.dev/b"] != "other" {
		t.Errorf("got %v, and %d left", got, left)
	}

	// More than the API server takes: whoever does not fit in is refused by the policies, and the others are not.
	many := map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("namespace-%05d", i)] = strings.Repeat("a", 40)
	}

	got, left = indexAnnotations(many, nil)
	size := 0

	for key, value := range got {
		size += len(key) + len(value)
	}

	if left == 0 || len(got)+left != len(many) || size > 256<<10 {
		t.Errorf("%d namespaces in %d bytes, and %d left", len(got), size, left)
	}

	if _, first := got["account.ambit.dev/namespace-00000"]; !first {
		t.Error("which namespaces fit in must not change from one time to the next")
	}
}

// TestIndexKeepsWhoIsInIt: however many namespaces somebody makes, and whatever they and their accounts are called, those that
// the policies know stay known, and others fill what is left, the shortest first.
func TestIndexKeepsWhoIsInIt(t *testing.T) {
	t.Parallel()

	accounts := map[string]string{"team": "writer", "tenant": "writer"}
	written, _ := indexAnnotations(accounts, nil)

	accounts["newcomer"], accounts["tenant"] = "writer", "other"
	for i := range 10_000 {
		accounts[fmt.Sprintf("a%04d", i)] = strings.Repeat("a", 250)
	}

	got, left := indexAnnotations(accounts, written)
	if left == 0 || got["account.ambit.dev/tenant"] != "other" || got["account.ambit.dev/newcomer"] != "writer" {
		t.Errorf("whose account has a short name is left out, with %d others", left)
	}

	full := map[string]string{}
	for i := range 20_000 {
		full[fmt.Sprintf("a%05d", i)] = "a"
	}

	accounts = maps.Clone(full)
	accounts["team"] = "writer"

	if got, left = indexAnnotations(accounts, written); left == 0 || got["account.ambit.dev/team"] != "writer" {
		t.Errorf("who was in it is left out, with %d others", left)
	}

	before, _ := indexAnnotations(full, nil)
	got, _ = indexAnnotations(accounts, before)

	for key := range before {
		if got[key] == "" {
			t.Fatalf("%s had to make room", key)
		}
	}
}

// TestIndexIsNotWrittenWithoutEnd: the index of a large cluster is a quarter of a megabyte, and somebody who names another
// account in one group ten times a second has it written no more often than the API server's database bears.
func TestIndexIsNotWrittenWithoutEnd(t *testing.T) {
	t.Parallel()

	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}

	synctest.Test(t, func(t *testing.T) {
		const seconds = 30

		index := &rbacv1.ClusterRole{}
		index.Name = read.GroupIndexName
		objects := []client.Object{index}

		for i := range 600 {
			g := &operatorsv1.OperatorGroup{}
			g.Namespace, g.Name, g.Spec.ServiceAccountName = fmt.Sprint("namespace-", i), "group", strings.Repeat("a", 250)
			objects = append(objects, g)
		}

		writes := 0
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(
			&rbacv1.ClusterRole{}, "metadata.name", func(obj client.Object) []string { return []string{obj.GetName()} },
		).WithInterceptorFuncs(interceptor.Funcs{
			Watch: func(
				ctx context.Context, from client.WithWatch, list client.ObjectList, opts ...client.ListOption,
			) (apiwatch.Interface, error) {
				if raw := (&client.ListOptions{}).ApplyOptions(opts).AsListOptions(); raw.SendInitialEvents != nil {
					return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // A fake client marks no end of what is there.
				}

				return from.Watch(ctx, list, opts...)
			},
			Patch: func(
				ctx context.Context, to client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
			) error {
				writes++

				return to.Patch(ctx, obj, patch, opts...)
			},
		}).Build()

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- (&groupIndex{client: c, known: read.NewGroupIndex(c)}).Start(ctx) }()

		flipped := &operatorsv1.OperatorGroup{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(objects[1]), flipped); err != nil {
			t.Fatal(err)
		}

		for i := range 10 * seconds {
			flipped.Spec.ServiceAccountName = fmt.Sprint("account-", i%2)
			if err := c.Update(ctx, flipped); err != nil {
				t.Fatal(err)
			}

			time.Sleep(time.Second / 10)
		}

		time.Sleep(lastRetry)
		synctest.Wait()

		if most := (indexBurst+seconds*indexRate)/150_000 + 1; writes == 0 || writes > most {
			t.Errorf("written %d times, want at most %d", writes, most)
		}

		if err := c.Get(ctx, client.ObjectKeyFromObject(index), index); err != nil {
			t.Fatal(err)
		}

		if got, want := index.Annotations[read.AccountPrefix+flipped.Namespace], flipped.Spec.ServiceAccountName; got != want {
			t.Errorf("in the end it says %q, want %q", got, want)
		}

		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
