package declared_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/read"
)

const (
	megabyte = 1 << 20
	limit    = 12 * megabyte
)

func sized(name string, bytes int) *operatorv1.NamespaceScope {
	return &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID(name)},
		Spec:       operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{strings.Repeat("m", bytes)}},
	}
}

func room() *declared.Quota {
	return declared.NewQuota(limit, func(o client.Object) {
		if nss, is := o.(*operatorv1.NamespaceScope); is {
			nss.Spec.NamespaceMembers = nil
		}
	})
}

// cached hands objects to a cache in an order, and returns what it keeps.
func cached(t *testing.T, r *declared.Quota, objects []*operatorv1.NamespaceScope) []client.Object {
	t.Helper()

	out := make([]client.Object, 0, len(objects))

	for _, o := range objects {
		kept, err := r.Transform(o.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}

		of, is := kept.(client.Object)
		if !is {
			t.Fatalf("the cache keeps %T", kept)
		}

		out = append(out, of)
	}

	return out
}

// TestTheLargestDeclarationsAreOver: whatever the order in which a cache is told of them, the same ones are over the limit,
// and what the cache holds is bounded meanwhile.
func TestTheLargestDeclarationsAreOver(t *testing.T) {
	t.Parallel()

	objects := []*operatorv1.NamespaceScope{sized("small", 100)}
	for i := range 40 {
		objects = append(objects, sized(fmt.Sprintf("large-%02d", i), 2*megabyte-i))
	}

	// Five of two megabytes and the small one have room; the smallest come first.
	want := make([]types.UID, 0, len(objects))
	for i := range 35 {
		want = append(want, types.UID(fmt.Sprintf("large-%02d", i)))
	}

	for range 20 {
		rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })

		r := room()
		kept := cached(t, r, objects)

		over, sorted := r.Over("ops", kept)
		if got := slices.Sorted(maps.Keys(over)); !slices.Equal(got, want) || sorted[0] != "small" || sorted[40] != "large-00" {
			t.Fatalf("over are %v, want %v; sorted they are %v", got, want, sorted)
		}

		sum := 0
		for _, o := range kept {
			sum += read.Weight(o)
		}

		if sum > limit+limit/2+megabyte || sum < limit {
			t.Fatalf("the cache holds %d MiB", sum/megabyte)
		}
	}
}

// TestObjectObservedAgainCountsOnce: an object that is observed again counts once, and one that the cache emptied is whole when
// it is observed again after others have gone.
func TestObjectObservedAgainCountsOnce(t *testing.T) {
	t.Parallel()

	r, one := room(), sized("one", 15*megabyte)

	for range 3 {
		if kept := cached(t, r, []*operatorv1.NamespaceScope{one}); declared.IsEmptied(kept[0]) {
			t.Fatal("it is emptied although nothing else is there")
		}
	}

	two := sized("two", 10*megabyte)
	if kept := cached(t, r, []*operatorv1.NamespaceScope{two}); !declared.IsEmptied(kept[0]) {
		t.Fatal("there is no end to what is kept")
	}

	if kept := cached(t, r, []*operatorv1.NamespaceScope{sized("one", 10)}); declared.IsEmptied(kept[0]) {
		t.Fatal("it is emptied although it is small by now")
	}

	if kept := cached(t, r, []*operatorv1.NamespaceScope{two}); declared.IsEmptied(kept[0]) {
		t.Error("it is emptied although there is room")
	}
}

// TestStatusDecidesNothing: what Ambit tells of a scope does not put it over the limit, nor does what is told of one that is.
func TestStatusDecidesNothing(t *testing.T) {
	t.Parallel()

	one, two := sized("one", 6*megabyte-10_000), sized("two", 6*megabyte-10_000)
	one.Status.ValidatedMembers = []string{strings.Repeat("m", megabyte)}
	two.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", megabyte)}}

	r := room()
	if over, _ := r.Over("ops", cached(t, r, []*operatorv1.NamespaceScope{one, two})); len(over) > 0 {
		t.Errorf("over are %v", over)
	}

	// Those that are emptied count as they did before.
	big := sized("big", 18*megabyte)
	big.Status.ValidatedMembers = one.Status.ValidatedMembers
	there := append(cached(t, r, []*operatorv1.NamespaceScope{big}), one, two)

	over, _ := r.Over("ops", there)
	if got := slices.Collect(maps.Keys(over)); !slices.Equal(got, []types.UID{"big"}) || !declared.IsEmptied(there[0]) {
		t.Errorf("over are %v", got)
	}

	// What is deleted serves nothing.
	there[0].SetDeletionTimestamp(new(metav1.Now()))

	if over, _ := r.Over("ops", there); len(over) > 0 {
		t.Errorf("over are %v", over)
	}
}

// TestStatusOfNoKindDecides holds the same for the other kinds: what Ambit writes into them does not put them over the limit, and
// what is said of those that are would not let them in again. The steps of an InstallPlan count, although they are in its status.
func TestStatusOfNoKindDecides(t *testing.T) {
	t.Parallel()

	long, words := strings.Repeat("m", limit), map[string]any{"message": strings.Repeat("m", limit)}
	olm := func(kind string, content map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: content}
		o.SetAPIVersion("operators.coreos.com/v1alpha1")
		o.SetKind(kind)
		o.SetName("one")
		o.SetUID("one")

		return o
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "one"}}
	group.Status.Namespaces = []string{long}
	written := olm("Subscription", map[string]any{})
	written.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: long}})

	for name, tc := range map[string]struct {
		of   client.Object
		over bool
	}{
		"a group with many namespaces":         {of: group},
		"a Subscription that many wrote":       {of: written},
		"a Subscription of which much is said": {of: olm("Subscription", map[string]any{"status": words})},
		"a Subscription that says much": {
			of: olm("Subscription", map[string]any{"spec": map[string]any{"name": long}}), over: true,
		},
		"an InstallPlan of which much is said": {of: olm("InstallPlan", map[string]any{"status": words})},
		"an InstallPlan of many steps": {
			of: olm("InstallPlan", map[string]any{"status": map[string]any{"plan": []any{long}}}), over: true,
		},
	} {
		before := tc.of.DeepCopyObject()

		if over, _ := room().Over("", []client.Object{tc.of}); (len(over) > 0) != tc.over {
			t.Errorf("%s is over the limit: %t, want %t", name, len(over) > 0, tc.over)
		}

		if !equality.Semantic.DeepEqual(tc.of, before) {
			t.Errorf("%s is changed by weighing it", name)
		}
	}
}

// TestWhatIsGoneMakesRoom: room that an object took is there for the next one as soon as it is deleted.
func TestWhatIsGoneMakesRoom(t *testing.T) {
	t.Parallel()

	r, one, two := room(), sized("one", 15*megabyte), sized("two", 15*megabyte)

	if kept := cached(t, r, []*operatorv1.NamespaceScope{one, two}); declared.IsEmptied(kept[0]) || !declared.IsEmptied(kept[1]) {
		t.Fatal("want the first one whole, and the second one emptied")
	}

	r.Gone("ops", one.UID)

	if kept := cached(t, r, []*operatorv1.NamespaceScope{two}); declared.IsEmptied(kept[0]) {
		t.Error("what is gone takes room")
	}
}

// TestNobodyElseMarksWhatIsEmptied: the API server has no object that looks as if a cache had emptied it.
func TestNobodyElseMarksWhatIsEmptied(t *testing.T) {
	t.Parallel()

	for i, seconds := range []*int64{nil, new(int64(0)), new(int64(30))} {
		o := sized("one", 10)
		o.DeletionGracePeriodSeconds = seconds

		if declared.IsEmptied(o) {
			t.Errorf("grace period %d says that it is emptied", i)
		}
	}
}
