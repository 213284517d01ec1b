package read

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// kind is a kind of object of which an operator namespace has a table.
type kind interface {
	// takeIn puts an object of the kind into the table.
	takeIn(obj client.Object, a arrival)
	// drop takes one out of it.
	drop(key types.NamespacedName, version uint64)
	// version is the one in which an object is known.
	version(key types.NamespacedName) (version uint64, known bool)
	// watch fills the table until the context ends.
	watch(ctx context.Context, w *Watches, h *operatorNamespace, listed func(), opts ...client.ListOption)
}

// kindOf is a kind with its table, an empty list of its objects, and what converts one into a record. weigh says what a record
// counts for in the allowance of a namespace.
type kindOf[R any] struct {
	*table[R]

	list    client.ObjectList
	convert func(client.Object) (R, bool)
	weigh   func(record R) int
}

// allKinds are those of which all objects are read in every operator namespace, by the type of these. A further kind is a line
// here, or, if it has a pod template, among the workload types.
func (h *operatorNamespace) allKinds() map[reflect.Type]kind {
	kinds := map[reflect.Type]kind{
		reflect.TypeFor[*rbacv1.Role]():           kindOf[[]rbacv1.PolicyRule]{&h.roles, &rbacv1.RoleList{}, convertRole, weighRules},
		reflect.TypeFor[*rbacv1.RoleBinding]():    kindOf[facts.Binding]{&h.bindings, &rbacv1.RoleBindingList{}, convertBinding, nil},
		reflect.TypeFor[*corev1.ServiceAccount](): kindOf[struct{}]{&h.accounts, &corev1.ServiceAccountList{}, convertName, nil},
		reflect.TypeFor[*corev1.ConfigMap]():      kindOf[facts.ConfigMap]{&h.maps, &corev1.ConfigMapList{}, convertConfigMap, nil},
		reflect.TypeFor[*corev1.Pod]():            kindOf[facts.Pod]{&h.pods, &corev1.PodList{}, convertPod, nil},
	}

	for i := range facts.WorkloadTypes {
		t := &facts.WorkloadTypes[i]
		kinds[reflect.TypeOf(t.New())] = kindOf[facts.Workload]{h.workloads[t.Kind], t.NewList(), convertWorkload, nil}
	}

	return kinds
}

// kind is that of an object; nil where there is no table of such objects.
func (h *operatorNamespace) kind(obj client.Object) kind { return h.kinds[reflect.TypeOf(obj)] }

func (k kindOf[R]) takeIn(obj client.Object, a arrival) {
	if r, keep := k.convert(obj); keep {
		k.put(client.ObjectKeyFromObject(obj), r, a)
	} else {
		k.drop(client.ObjectKeyFromObject(obj), a.version) // It may have been of interest before.
	}
}

// watch is called with the store locked, so that no watch counts as listed before the last one was started.
func (k kindOf[R]) watch(ctx context.Context, w *Watches, h *operatorNamespace, listed func(), opts ...client.ListOption) {
	h.waiting++
	s := tableSink(k.table, k.convert)
	s.weigh = k.weigh
	s.allowance, s.bounded = h.allowances.add(k.list, allowanceOf), func() {
		if h.waiting == 0 && ctx.Err() == nil {
			h.bounded()
		}
	}

	start(ctx, w, &s, k.list, listed, nil, opts...)
}
