package read

import (
	"context"
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// kind is a kind of object of which a namespace has a table.
type kind interface {
	holder

	// wrote puts an object that Ambit wrote into the table, if there is room for it.
	wrote(s *Store, of allowances, obj client.Object, a arrival)
	// watch fills the table for as long as the namespace is watched. It is called with the store locked.
	watch(w *Watches, in *records, listed func(), opts ...client.ListOption)
}

// kindOf is a kind with its table, an empty list of its objects, and what converts one into a record. weigh says what a record
// counts for in the allowance of a namespace, which is limit.
type kindOf[R any] struct {
	*table[R]

	list    client.ObjectList
	convert func(client.Object) (R, bool)
	weigh   func(record R) int
	limit   int
}

func newKind[R any](t *table[R], list client.ObjectList, convert func(client.Object) (R, bool)) kindOf[R] {
	return kindOf[R]{table: t, list: list, convert: convert, limit: allowanceOf, weigh: func(record R) int { return Weight(record) }}
}

// allKinds are those of which all objects are read in every operator namespace, by the type of these. A further kind is a line
// here, or, if it has a pod template, among the workload types.
func (h *operatorNamespace) allKinds() map[reflect.Type]kind {
	leases := newKind(&h.followers, &coordinationv1.LeaseList{}, convertFollower)
	roles := newKind(&h.roles, &rbacv1.RoleList{}, convertRole)
	roles.weigh = weighRules

	kinds := map[reflect.Type]kind{
		reflect.TypeFor[*rbacv1.Role]():               roles,
		reflect.TypeFor[*rbacv1.RoleBinding]():        newKind(&h.bindings, &rbacv1.RoleBindingList{}, convertBinding),
		reflect.TypeFor[*corev1.ServiceAccount]():     newKind(&h.accounts, &corev1.ServiceAccountList{}, convertAccountName),
		reflect.TypeFor[*corev1.ConfigMap]():          newKind(&h.maps, &corev1.ConfigMapList{}, convertConfigMap),
		reflect.TypeFor[*corev1.Pod]():                newKind(&h.pods, &corev1.PodList{}, convertPod),
		reflect.TypeFor[*coordinationv1.Lease]():      followerKind{leases},
		reflect.TypeFor[*unstructured.Unstructured](): csvKind{h.csvs()},
	}

	for i := range facts.WorkloadTypes {
		t := &facts.WorkloadTypes[i]
		kinds[reflect.TypeOf(t.New())] = newKind(h.workloads[t.Kind], t.NewList(), convertWorkload)
	}

	return kinds
}

func (k kindOf[R]) takeIn(obj client.Object, a arrival) { tableSink(k.table, k.convert).takeIn(obj, a) }

// wrote leaves out a record for which there is no room: then the watch is about to report the same object, and decides what is
// left out. Others may have made large what Ambit writes on.
func (k kindOf[R]) wrote(s *Store, of allowances, obj client.Object, a arrival) {
	key := client.ObjectKeyFromObject(obj)
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.drop(key, 0)
	}

	if r, keep := k.convert(obj); keep && of[kindName(k.list)].addIfRoom(key, k.weigh(r), leave) {
		k.put(key, r, a)
	}
}

func (k kindOf[R]) watch(w *Watches, in *records, listed func(), opts ...client.ListOption) {
	in.waiting++
	s := k.sink(in.running, in)

	start(in.running, w, &s, k.list, listed, nil, opts...)
}

// sink fills the table, as far as the allowance of the namespace goes, until the context ends. The store is locked.
func (k kindOf[R]) sink(ctx context.Context, in *records) sink[R] {
	s := whileRunning(ctx, tableSink(k.table, k.convert))
	s.weigh, s.allowance, s.bounded = k.weigh, in.allowances.add(k.list, k.limit), in.bounded

	return s
}

// csvs is the kind of the ClusterServiceVersions of an operator namespace.
func (h *operatorNamespace) csvs() kindOf[facts.CSV] {
	k := newKind(&h.olm.csvs, scope.NewOLMList(scope.KindCSV), convertCSV)
	k.weigh = weighCSV

	return k
}

// csvKind is that of the ClusterServiceVersions, which are watched while somebody wants them: see CSVs.
type csvKind struct{ kindOf[facts.CSV] }

func (csvKind) watch(*Watches, *records, func(), ...client.ListOption) {}
