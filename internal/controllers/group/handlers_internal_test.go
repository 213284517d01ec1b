package group

import (
	"context"
	"slices"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// indexed is a cache of ClusterServiceVersions that finds them by what they name.
type indexed struct {
	client.Reader

	csvs []*unstructured.Unstructured
}

func (r *indexed) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	by := (&client.ListOptions{}).ApplyOptions(opts)
	out, _ := list.(*unstructured.UnstructuredList) // Nothing else is asked for.

	for _, csv := range r.csvs {
		name, exact := by.FieldSelector.RequiresExactMatch(byDefinition)
		if exact && slices.Contains(definitionsOf(csv), name) {
			out.Items = append(out.Items, *csv)
		}
	}

	return nil
}

// asked notes what is asked for.
type asked struct {
	changes.Queue

	added []string
}

func (q *asked) AddAfter(key scope.Key, _ time.Duration) { q.added = append(q.added, key.Namespace) }

// TestDefinitionsWakeWhoNamesThem: where a ClusterServiceVersion owns or requires a definition that came, it may have waited
// for that, and is planned again at once.
func TestDefinitionsWakeWhoNamesThem(t *testing.T) {
	t.Parallel()

	named := func(namespace string, edit func(*olm.ClusterServiceVersion)) *unstructured.Unstructured {
		csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op.v1"}}
		edit(csv)

		obj, err := install.Untyped(csv)
		if err != nil {
			t.Fatal(err)
		}

		return obj
	}
	description := []olm.CRDDescription{{Name: "others.example.com"}, {Name: "things.example.com"}}

	cache := &indexed{csvs: []*unstructured.Unstructured{
		named("owns", func(c *olm.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Owned = description }),
		named("requires", func(c *olm.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Required = description }),
		named("other", func(c *olm.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Owned = description[:1] }),
		named("copy", func(c *olm.ClusterServiceVersion) {
			c.Labels, c.Spec.CustomResourceDefinitions.Owned = map[string]string{olm.CopiedLabelKey: "owns"}, description
		}),
	}}

	heard, q := changes.New(), &asked{}
	heard.Start(scope.Installs, q)

	for _, namespace := range []string{"owns", "requires", "other", "copy"} {
		heard.Follow(scope.Installs.In(namespace), nil)
	}

	ToAll(heard, read.NewStore(heard), cache).Create(t.Context(), event.CreateEvent{
		Object: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}},
	}, q)

	if slices.Sort(q.added); !slices.Equal(q.added, []string{"owns", "requires"}) {
		t.Errorf("asked for plans of %v", q.added)
	}
}
