// Package declared bounds what caches keep of scopes, groups, and the kinds of catalogs: whoever declares them in a namespace
// decides how many they are and how large, and all other namespaces share the memory.
package declared

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/read"
)

// onItsWay is how long an object may take from the watch into the cache.
const onItsWay = time.Minute

// Quota is what is kept of one kind in each namespace, and how much may be.
type Quota struct {
	limit int
	empty func(client.Object)

	mu         sync.Mutex
	namespaces map[string]map[types.UID]kept
}

type kept struct {
	weight int
	at     time.Time
}

// NewQuota returns a quota of so many bytes of memory for each namespace. empty removes from an object what can be large, and
// leaves what is needed to revoke what was made for it.
func NewQuota(limit int, empty func(client.Object)) *Quota {
	return &Quota{limit: limit, empty: empty, namespaces: map[string]map[types.UID]kept{}}
}

// Transform is asked by a cache what to keep of an object.
func (r *Quota) Transform(obj any) (any, error) {
	o, is := obj.(client.Object)
	if !is || emptied(o) > 0 {
		return obj, nil
	}

	if !r.take(o, read.Weight(o)) {
		weight := declaredWeight(o)
		r.Empty(o)
		// Of a custom resource the API server knows no grace period other than zero, so nobody else can have written this.
		o.SetDeletionGracePeriodSeconds(new(int64(-weight)))
	}

	return o, nil
}

// declaredWeight is what the author of an object decides. Status does not count, nor who wrote which field: Ambit writes
// another status for an object that is over the limit, and what is over the limit must not depend on that.
func declaredWeight(o client.Object) int {
	switch o := o.(type) {
	case *operatorv1.NamespaceScope:
		bare := *o
		bare.Status, bare.ManagedFields = operatorv1.NamespaceScopeStatus{}, nil

		return read.Weight(&bare)
	case *namespacescopev1alpha1.NamespaceScope:
		bare := *o
		bare.Status, bare.ManagedFields = operatorv1.NamespaceScopeStatus{}, nil

		return read.Weight(&bare)
	case *operatorsv1.OperatorGroup:
		bare := *o
		bare.Status, bare.ManagedFields = operatorsv1.OperatorGroupStatus{}, nil

		return read.Weight(&bare)
	case *unstructured.Unstructured:
		return read.Weight(withoutStatus(o))
	default:
		return read.Weight(o)
	}
}

// withoutStatus is an object without what Ambit tells of it. The steps of an InstallPlan are in its status, but are what it is:
// they stay as they were made.
func withoutStatus(o *unstructured.Unstructured) *unstructured.Unstructured {
	bare := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	delete(bare.Object, "status")

	if metadata, is := o.Object["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		bare.Object["metadata"] = metadata
	}

	status, _ := o.Object["status"].(map[string]any)
	if steps, has := status["plan"]; has {
		bare.Object["status"] = map[string]any{"plan": steps}
	}

	return bare
}

// emptied is what an object weighed before the cache emptied it; zero for one that is whole.
func emptied(o client.Object) int {
	if seconds := o.GetDeletionGracePeriodSeconds(); seconds != nil && *seconds < 0 {
		return int(-*seconds)
	}

	return 0
}

// IsEmptied says whether the cache has emptied an object.
func IsEmptied(o client.Object) bool { return emptied(o) > 0 }

// Anew reads an object that a cache has emptied, and says whether it is there. It lists by name, because Ambit may list the kinds
// that it watches, but not get them.
func Anew(ctx context.Context, live client.Reader, o client.Object) (bool, error) {
	list, err := listOf(o)
	if err != nil {
		return false, err
	}

	if err := live.List(ctx, list, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{metav1.ObjectNameField: o.GetName()}); err != nil {
		return false, fmt.Errorf("listing %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}

	items, err := meta.ExtractList(list)
	if err != nil || len(items) != 1 {
		return false, err //nolint:wrapcheck // It cannot fail for a list.
	}

	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(items[0]).Elem())

	return true, nil
}

func listOf(o client.Object) (client.ObjectList, error) {
	switch o := o.(type) {
	case *operatorv1.NamespaceScope:
		return &operatorv1.NamespaceScopeList{}, nil
	case *namespacescopev1alpha1.NamespaceScope:
		return &namespacescopev1alpha1.NamespaceScopeList{}, nil
	case *operatorsv1.OperatorGroup:
		return &operatorsv1.OperatorGroupList{}, nil
	case *unstructured.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(o.GetKind() + "List"))

		return list, nil
	default:
		return nil, fmt.Errorf("%T is not declared", o)
	}
}

func (r *Quota) take(o client.Object, weight int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	of := r.namespaces[o.GetNamespace()]
	if of == nil {
		of = map[types.UID]kept{}
		r.namespaces[o.GetNamespace()] = of
	}

	delete(of, o.GetUID())

	sum := weight
	for _, k := range of {
		sum += k.weight
	}

	// Which objects are over the limit depends on all of them, and the cache gets one after the other. So it may hold half as much
	// again.
	if sum > r.limit+r.limit/2 {
		return false
	}

	of[o.GetUID()] = kept{weight, time.Now()}

	return true
}

// Over returns those of the objects that are over the limit of their namespace: the largest ones, until the rest fits, in
// whatever order they came; and all of them, the smallest first. objects are all that the cache has. A deleted object serves
// nothing, so it does not count.
func (r *Quota) Over(namespace string, objects []client.Object) (over map[types.UID]struct{}, sorted []types.UID) {
	r.Keep(namespace, objects)

	weights := make(map[types.UID]int, len(objects))
	for _, o := range objects {
		weights[o.GetUID()] = cmp.Or(emptied(o), declaredWeight(o))
	}

	over = map[types.UID]struct{}{}
	sum := 0

	for _, o := range slices.SortedFunc(slices.Values(objects), func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(weights[a.GetUID()], weights[b.GetUID()]), cmp.Compare(a.GetName(), b.GetName()))
	}) {
		sorted = append(sorted, o.GetUID())

		if o.GetDeletionTimestamp() != nil {
			continue
		}

		if sum += weights[o.GetUID()]; sum > r.limit {
			over[o.GetUID()] = struct{}{}
		}
	}

	return over, sorted
}

// Fit returns which objects of a namespace are left out, and reads those again that the cache has emptied although there is
// room. objects are all that the cache has. Without a quota, all of them fit.
func (r *Quota) Fit(
	ctx context.Context, live client.Reader, namespace string, objects []client.Object,
) (map[types.UID]struct{}, error) {
	if r == nil {
		return nil, nil //nolint:nilnil // None is left out.
	}

	leftOut, _ := r.Over(namespace, objects)

	for _, o := range objects {
		if _, is := leftOut[o.GetUID()]; is || !IsEmptied(o) {
			continue
		}

		there := false

		if o.GetDeletionTimestamp() == nil {
			var err error
			if there, err = Anew(ctx, live, o); err != nil {
				return nil, err
			}
		}

		if !there {
			leftOut[o.GetUID()] = struct{}{} // It is being deleted, or gone, which the cache is about to report.
		}
	}

	return leftOut, nil
}

// Empty empties an object that is over the limit, also of what is for others.
func (r *Quota) Empty(o client.Object) {
	o.SetAnnotations(nil)
	o.SetLabels(nil)
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	r.empty(o)
}

// Gone is notified that an object was deleted.
func (r *Quota) Gone(namespace string, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if delete(r.namespaces[namespace], uid); len(r.namespaces[namespace]) == 0 {
		delete(r.namespaces, namespace)
	}
}

// Keep forgets what is no longer in the cache; objects are all that is.
func (r *Quota) Keep(namespace string, objects []client.Object) {
	there := sets.Set[types.UID]{}
	for _, o := range objects {
		there.Insert(o.GetUID())
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	of := r.namespaces[namespace]
	maps.DeleteFunc(of, func(uid types.UID, k kept) bool {
		return !there.Has(uid) && time.Since(k.at) > onItsWay
	})

	if len(of) == 0 {
		delete(r.namespaces, namespace)
	}
}
