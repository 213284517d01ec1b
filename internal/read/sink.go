package read

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// sink receives the objects of one watch and hands each on as a record; the object itself is let go at once. It stands
// where a client-go informer would keep whole objects.
type sink[R any] struct {
	// convert reads an object; keep says whether the object is of interest at all.
	convert func(client.Object) (record R, keep bool)
	// has says whether the table holds this very version already. Most of what a watch reports about projected objects are Ambit's
	// own writes, and reading one costs more than all the rest. Optional.
	has func(key types.NamespacedName, version uint64) bool
	// put and drop take a record into the table and out of it. Both are called with the store's lock held.
	put  func(key types.NamespacedName, record R, arrival arrival)
	drop func(key types.NamespacedName, version uint64)
	// keys lists what the table holds from this watch, with versions.
	keys func() map[types.NamespacedName]uint64
	// other is notified of each change of an object that is of no interest itself, by its namespace. Optional.
	other func(namespace string)
	// notifies says of a record that other is notified of it all the same. Optional.
	notifies func(record R) bool
	// done is called once, after the first list was stored.
	done func()
	// allowance bounds what is remembered; nil for what is not bounded. bounded is called, with the store's lock held, when it may
	// have left out more or less than before.
	allowance *allowance
	bounded   func()
	// weigh says what a record counts for in the allowance.
	weigh func(record R) int
	// most bounds what is gathered of a list in each namespace, where nothing but its table bounds the records: lighten leaves out
	// what the largest say. What weighs no more than small counts for nothing. Optional.
	most, small int
	lighten     func(record *R)
	gathered    map[string]*allowance

	lock   sync.Locker
	synced bool
}

// arrival says how a record came in.
type arrival struct {
	version uint64
	// born says that the record is that of an object's creation, seen as it happened.
	born bool
}

// item carries a record through the reflector's own storage, which needs a key and a version and nothing more: a whole
// ObjectMeta would double the memory of the first list.
type item[R any] struct {
	metav1.Object // Never set: only the three methods below are called.

	namespace, name, resourceVersion string

	record R
	keep   bool
}

// GetNamespace is asked for by the reflector.
func (it *item[R]) GetNamespace() string { return it.namespace }

// GetName is asked for by the reflector.
func (it *item[R]) GetName() string { return it.name }

// GetResourceVersion is asked for by the reflector.
func (it *item[R]) GetResourceVersion() string { return it.resourceVersion }

func (s *sink[R]) item(obj any) (*item[R], error) {
	switch o := obj.(type) {
	case *item[R]:
		return o, nil
	case client.Object:
		it := s.read(o)
		s.bound(it)

		return it, nil
	default:
		return nil, noObject(obj)
	}
}

func noObject(obj any) error {
	return fmt.Errorf("a watch delivered %T, which is no Kubernetes object", obj)
}

// gather is item for an object of a list, all of which is in memory until the last one is there.
func (s *sink[R]) gather(obj any) (*item[R], error) {
	it, err := s.item(obj)
	if err != nil || s.most == 0 {
		return it, err
	}

	weight := s.weigh(it.record)
	if weight <= s.small {
		return it, nil
	}

	if s.gathered == nil {
		s.gathered = map[string]*allowance{}
	}

	in, is := s.gathered[it.namespace]
	if !is {
		in = newAllowance(s.most)
		s.gathered[it.namespace] = in
	}

	in.addUnlessSmall(it.key(), weight, s.small, func() { s.lighten(&it.record) })

	return it, nil
}

func (s *sink[R]) read(o client.Object) *item[R] {
	it := &item[R]{namespace: o.GetNamespace(), name: o.GetName(), resourceVersion: o.GetResourceVersion()}
	it.record, it.keep = s.convert(o)

	return it
}

// bound keeps the record of an item only if there is room, and drops others that have none because of it, wherever they are by
// then. All of this happens in the one goroutine of the watch.
func (s *sink[R]) bound(it *item[R]) {
	if s.allowance == nil {
		return
	}

	key := it.key()

	if !it.keep {
		s.allowance.free(key)

		return
	}

	before, _ := s.allowance.leftOut()
	leave := func(of *item[R]) {
		var none R
		of.record, of.keep = none, false
	}

	if !s.allowance.add(key, s.weigh(it.record), func() {
		leave(it)

		s.lock.Lock()
		defer s.lock.Unlock()
		s.drop(key, 0)
	}) {
		leave(it)
	}

	if now, room := s.allowance.leftOut(); now != before || room {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.bounded()
	}
}

// Transformer makes the reflector keep items, and not whole objects, while it gathers the first list.
func (s *sink[R]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.gather(obj) }
}

// Add stores an object that was created.
func (s *sink[R]) Add(obj any) error { return s.take(obj, true) }

// Update stores an object that was changed.
func (s *sink[R]) Update(obj any) error { return s.take(obj, false) }

func (s *sink[R]) take(obj any, born bool) error {
	if s.isKnown(obj) {
		return nil
	}

	it, err := s.item(obj)
	if err != nil {
		return err
	}

	s.lock.Lock()
	defer s.lock.Unlock()

	if it.keep {
		s.put(it.key(), it.record, arrival{version: it.version(), born: born})
	} else {
		s.drop(it.key(), it.version())
	}

	s.notifyOther(it)

	return nil
}

// takeIn takes in an object that no watch brings, which may have been of interest before.
func (s sink[R]) takeIn(obj client.Object, a arrival) {
	if r, keep := s.convert(obj); keep {
		s.put(client.ObjectKeyFromObject(obj), r, a)
	} else {
		s.drop(client.ObjectKeyFromObject(obj), a.version)
	}
}

func (s *sink[R]) isKnown(obj any) bool {
	o, ok := obj.(client.Object)
	if !ok || s.has == nil {
		return false
	}

	version := scope.ParseVersion(o.GetResourceVersion())

	s.lock.Lock()
	defer s.lock.Unlock()

	return version != 0 && s.has(client.ObjectKeyFromObject(o), version)
}

func (s *sink[R]) notifyOther(it *item[R]) {
	if s.other != nil && s.synced && s.concernsOthers(it) {
		s.other(it.namespace)
	}
}

func (s *sink[R]) concernsOthers(it *item[R]) bool {
	return !it.keep || s.notifies != nil && s.notifies(it.record)
}

// Delete takes out an object that was deleted, or that the watch no longer selects.
func (s *sink[R]) Delete(obj any) error {
	o, ok := obj.(client.Object)
	if !ok {
		return noObject(obj)
	}

	it := s.read(o)

	s.lock.Lock()
	defer s.lock.Unlock()
	s.drop(it.key(), it.version())
	s.notifyOther(it)

	if s.allowance == nil {
		return nil
	}

	left, _ := s.allowance.leftOut()

	if s.allowance.free(it.key()); left > 0 {
		s.bounded()
	}

	return nil
}

// Replace stores a whole list. What is not on it is gone, unless Ambit wrote it after the list was made.
func (s *sink[R]) Replace(objs []any, listVersion string) error {
	before := 0
	if s.allowance != nil {
		before, _ = s.allowance.leftOut()
	}

	items, err := s.items(objs)
	if err != nil {
		return err
	}

	s.lock.Lock()
	defer s.lock.Unlock()

	gone, others := s.keys(), map[string]*item[R]{}

	for _, it := range items {
		if it.keep {
			delete(gone, it.key())
			s.put(it.key(), it.record, arrival{version: it.version()})
		}

		if s.concernsOthers(it) {
			others[it.namespace] = it
		}
	}

	// A list that is made again says nothing of what changed since the one before, so anything may have.
	for _, it := range others {
		s.notifyOther(it)
	}

	listed := scope.ParseVersion(listVersion)
	for key, version := range gone {
		if version <= listed {
			s.drop(key, listed)
		}
	}

	if !s.synced {
		s.synced = true
		s.done()
	}

	// What went meanwhile has made room, and nothing else reports it.
	if before > 0 {
		s.bounded()
	}

	return nil
}

// items reads a list, and forgets what is not on it.
func (s *sink[R]) items(objs []any) ([]*item[R], error) {
	items := make([]*item[R], 0, len(objs))
	s.gathered = nil // A list that broke off may have left something.

	for _, obj := range objs {
		it, err := s.gather(obj)
		if err != nil {
			return nil, err
		}

		items = append(items, it)
	}

	s.gathered = nil

	if s.allowance == nil {
		return items, nil
	}

	there := make(map[types.NamespacedName]struct{}, len(items))
	for _, it := range items {
		there[it.key()] = struct{}{}
	}

	s.allowance.keep(there)

	return items, nil
}

// Resync does nothing: nothing here is done at intervals.
func (s *sink[R]) Resync() error { return nil }

func (it *item[R]) key() types.NamespacedName {
	return types.NamespacedName{Namespace: it.namespace, Name: it.name}
}

func (it *item[R]) version() uint64 { return scope.ParseVersion(it.resourceVersion) }

// whileRunning limits a sink to the life of its watch: one that was stopped may still deliver what it has in hand.
func whileRunning[R any](ctx context.Context, k sink[R]) sink[R] {
	put, drop := k.put, k.drop
	k.put = func(key types.NamespacedName, r R, a arrival) {
		if ctx.Err() == nil {
			put(key, r, a)
		}
	}
	k.drop = func(key types.NamespacedName, version uint64) {
		if ctx.Err() == nil {
			drop(key, version)
		}
	}

	return k
}
