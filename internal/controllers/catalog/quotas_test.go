package catalog

import (
	"context"
	"fmt"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// large is an object of a kind whose text is about so many bytes.
func large(kind, name string, size int) *unstructured.Unstructured {
	obj := scope.NewOLM(kind)
	obj.SetNamespace("ns")
	obj.SetName(name)
	obj.SetUID(types.UID(name))
	obj.SetResourceVersion("7")
	obj.SetCreationTimestamp(metav1.Unix(1000, 0))
	obj.SetFinalizers([]string{"example.com/" + strings.Repeat("f", 100)})
	obj.Object["spec"] = map[string]any{
		"name": "tea", "startingCSV": strings.Repeat("x", size),
		"clusterServiceVersionNames": []any{strings.Repeat("x", size)},
		"sourceType":                 "configmap", "configMap": strings.Repeat("c", size),
	}
	obj.Object["status"] = map[string]any{"installedCSV": "op.v1", "conditions": []any{}}

	return obj
}

// list answers what is in the cluster, by name.
type list struct {
	client.Reader

	objects map[string]*unstructured.Unstructured
	asked   int
}

func (l *list) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	l.asked++

	o := client.ListOptions{}
	for _, opt := range opts {
		opt.ApplyToList(&o)
	}

	items, is := into.(*unstructured.UnstructuredList)
	if !is {
		return fmt.Errorf("it asks for %T", into)
	}

	name, _ := o.FieldSelector.RequiresExactMatch(metav1.ObjectNameField)
	if obj := l.objects[name]; obj != nil {
		items.Items = append(items.Items, *obj.DeepCopy())
	}

	return nil
}

func TestRoomsBoundEachKind(t *testing.T) {
	const size, many = 1 << 20, 40

	for _, kind := range []string{subscriptionKind, planKind, sourceKind} {
		t.Run(kind, func(t *testing.T) {
			quotas, live := NewQuotas(), &list{objects: map[string]*unstructured.Unstructured{}}
			kept := &unstructured.UnstructuredList{}

			add := func(obj *unstructured.Unstructured) {
				live.objects[obj.GetName()] = obj.DeepCopy()

				out, err := quotas.Transform(obj)
				if err != nil {
					t.Fatal(err)
				}

				kept.Items = append(kept.Items, *out.(*unstructured.Unstructured))
			}

			for i := range many {
				add(large(kind, fmt.Sprintf("large-%02d", i), size))
			}

			add(large(kind, "small", 10))

			sum := 0
			for i := range kept.Items {
				sum += read.Weight(kept.Items[i].Object)
			}

			if sum > 2*maxKind {
				t.Errorf("%d objects take %d bytes", len(kept.Items), sum)
			}

			over, err := quotas[kind].Fit(t.Context(), live, "ns", changes.Objects(kept.Items))
			if err != nil {
				t.Fatal(err)
			}

			if _, is := over["small"]; is || len(over) < many-5 || len(over) >= many {
				t.Errorf("left out are %v", over)
			}

			small := kept.Items[many]
			if name, _, _ := unstructured.NestedString(small.Object, "spec", "configMap"); name != strings.Repeat("c", 10) ||
				declared.IsEmptied(&small) {
				t.Errorf("the small one is %v", small.Object)
			}

			for i := range many {
				quotas.gone(&kept.Items[i])
			}

			last := &unstructured.UnstructuredList{Items: kept.Items[many-1 : many]}
			if !declared.IsEmptied(&last.Items[0]) {
				t.Fatal("the last one is whole")
			}

			over, err = quotas[kind].Fit(t.Context(), live, "ns", changes.Objects(last.Items))
			if err != nil || len(over) > 0 || declared.IsEmptied(&last.Items[0]) || live.asked != 1 {
				t.Errorf("once there is room, left out are %v (%v), and %d objects were read", over, err, live.asked)
			}
		})
	}
}

func TestEmptiedIsStillKnown(t *testing.T) {
	obj := large(subscriptionKind, "one", 8<<20)
	was := obj.DeepCopy()

	if out, err := NewQuotas().Transform(obj); err != nil || out != any(obj) || !declared.IsEmptied(obj) {
		t.Fatalf("it became %v (%v)", out, err)
	}

	if obj.GetName() != "one" || obj.GetNamespace() != "ns" || obj.GetUID() != was.GetUID() || obj.GetResourceVersion() != "7" ||
		obj.GetCreationTimestamp() != was.GetCreationTimestamp() || obj.GetKind() != subscriptionKind || isOversized(obj) {
		t.Errorf("it is %v", obj.Object)
	}

	typed := &olmv1alpha1.Subscription{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil || typed.Spec != nil {
		t.Errorf("it is read as %+v (%v)", typed, err)
	}

	names, config := install.LeftOutConfig(obj)
	if len(names) != 1 || names[0] != "op.v1" || !config.LeftOut || !strings.Contains(config.Problem, "Subscription one") {
		t.Errorf("for %v it says %+v", names, config)
	}
}

// TestLargeStatusIsNotWrittenOver: nobody but Ambit should write a status, but a cluster may let them. One that is not remembered
// cannot be compared, and would be written each time.
func TestLargeStatusIsNotWrittenOver(t *testing.T) {
	obj := large(subscriptionKind, "one", 10)
	obj.Object["status"].(map[string]any)["message"] = strings.Repeat("m", 8<<20)

	if _, err := NewQuotas().Transform(obj); err != nil || !isOversized(obj) {
		t.Fatalf("it became %.300v (%v)", obj.Object, err)
	}

	if names, _ := install.LeftOutConfig(obj); len(names) != 1 || names[0] != "op.v1" {
		t.Errorf("what it installed is %v", names)
	}

	forged := large(subscriptionKind, "forged", 10)
	forged.SetAnnotations(map[string]string{annotationOversized: ""})

	if _, err := NewQuotas().Transform(forged); err != nil || isOversized(forged) {
		t.Errorf("somebody marks their own: %v (%v)", forged.Object, err)
	}
}

func TestWithoutRoomsEverythingIsThere(t *testing.T) {
	objects := changes.Objects([]unstructured.Unstructured{*large(planKind, "one", 8<<20)})
	if over, err := Quotas(nil)[planKind].Fit(t.Context(), &list{}, "ns", objects); err != nil || len(over) > 0 {
		t.Errorf("left out are %v (%v)", over, err)
	}
}
