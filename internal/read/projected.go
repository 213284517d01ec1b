package read

import (
	"maps"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// projectedTable holds the records of projected objects: tens of thousands on a large cluster, so a record is small and
// shares its strings with its siblings in other namespaces.
type projectedTable struct {
	// homes holds the objects of each home by the namespace that they are in.
	homes map[string]map[string]*holding
	// homeOf finds an object of which only the key is known.
	homeOf  map[projectedKey]string
	graves  graves[projectedKey]
	changed func(homes ...string)
	// inherited is what bears the marks of IBM's operator instead.
	inherited inheritedTable
}

// holding is what a namespace holds for one home. Facts get the map itself, and what facts got never changes again: the
// first change after that goes into a copy. So a pass over forty thousand objects copies those of the few namespaces
// that changed since the last one.
type holding struct {
	objects map[facts.ProjectedKey]facts.Projected
	lent    bool
}

type projectedKey struct {
	namespace string
	facts.ProjectedKey
}

type projectedRecord struct {
	facts.Projected

	home string
	// inherited is set for what bears the marks of IBM's operator, and none of Ambit's.
	inherited *facts.Inherited
}

func (t *projectedTable) put(key projectedKey, record projectedRecord, a arrival) {
	if t.graves.holds(key, a.version) {
		return
	}

	record.Version = a.version
	before, home, known := t.find(key)

	switch {
	case known && a.version != 0 && a.version < before.Version, known && home == record.home && before == record.Projected:
		return
	case known && home != record.home:
		t.remove(key, home)
		t.changed(home)
	}

	t.set(key, record)

	if before.Version = a.version; !known || home != record.home || before != record.Projected {
		t.changed(record.home)
	}
}

func (t *projectedTable) drop(key projectedKey, version uint64) {
	before, home, known := t.find(key)
	if !known || version != 0 && version < before.Version {
		return
	}

	t.graves.bury(key, version)
	t.remove(key, home)
	t.changed(home)
}

func (t *projectedTable) find(key projectedKey) (record facts.Projected, home string, known bool) {
	if home, known = t.homeOf[key]; known {
		record = t.homes[home][key.namespace].objects[key.ProjectedKey]
	}

	return record, home, known
}

func (t *projectedTable) set(key projectedKey, record projectedRecord) {
	if t.homes == nil {
		t.homes, t.homeOf = map[string]map[string]*holding{}, map[projectedKey]string{}
	}

	if t.homes[record.home] == nil {
		t.homes[record.home] = map[string]*holding{}
	}

	h := t.homes[record.home][key.namespace]
	if h == nil {
		h = &holding{objects: map[facts.ProjectedKey]facts.Projected{}}
		t.homes[record.home][key.namespace] = h
	}

	h.own()
	h.objects[key.ProjectedKey] = record.Projected
	t.homeOf[key] = record.home
}

func (t *projectedTable) remove(key projectedKey, home string) {
	h := t.homes[home][key.namespace]
	h.own()
	delete(h.objects, key.ProjectedKey)
	delete(t.homeOf, key)

	if len(h.objects) == 0 {
		delete(t.homes[home], key.namespace)
	}

	if len(t.homes[home]) == 0 {
		delete(t.homes, home)
	}
}

// forget takes out everything of a namespace, without telling anybody.
func (t *projectedTable) forget(namespace string) {
	for key, home := range t.homeOf {
		if key.namespace == namespace {
			t.remove(key, home)
		}
	}

	t.inherited.forget(namespace)
}

// own makes the map ours to change.
func (h *holding) own() {
	if h.lent {
		h.objects, h.lent = maps.Clone(h.objects), false
	}
}

// of lends out what a home projected. The store has to be locked for writing.
func (t *projectedTable) of(homeName string) map[string]map[facts.ProjectedKey]facts.Projected {
	out := make(map[string]map[facts.ProjectedKey]facts.Projected, len(t.homes[homeName]))

	for namespace, h := range t.homes[homeName] {
		h.lent = true
		out[namespace] = h.objects
	}

	return out
}

// Holds says whether a namespace holds something that Ambit made for an owner of a home; the empty name stands for what has no
// namespace.
func (s *Store) Holds(homeName, owner, namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	held := s.projected.homes[homeName][namespace]
	if held == nil {
		return false
	}

	for _, o := range held.objects {
		if o.Made && o.Owner == owner {
			return true
		}
	}

	return false
}

// size counts the objects of a home.
func (t *projectedTable) size(homeName string) int {
	n := 0
	for _, h := range t.homes[homeName] {
		n += len(h.objects)
	}

	return n
}

// sink returns the receiver of the watch of one kind.
func (t *projectedTable) sink(kind projected.Kind) sink[projectedRecord] {
	full := func(key types.NamespacedName) projectedKey {
		return projectedKey{shared(key.Namespace), facts.ProjectedKey{Kind: kind, Name: shared(key.Name)}}
	}

	return sink[projectedRecord]{
		convert: convertProjected,
		has: func(key types.NamespacedName, version uint64) bool {
			held, _, known := t.find(full(key))

			return known && held.Version == version
		},
		put: func(key types.NamespacedName, r projectedRecord, a arrival) {
			t.takeIn(full(key), r, a)
		},
		drop: func(key types.NamespacedName, version uint64) { t.takeOut(full(key), version) },
		keys: func() map[types.NamespacedName]uint64 {
			out := map[types.NamespacedName]uint64{}
			for key, version := range t.versions(kind) {
				out[types.NamespacedName{Namespace: key.namespace, Name: key.Name}] = version
			}

			return out
		},
	}
}

func convertProjected(obj client.Object) (projectedRecord, bool) {
	o, ok := projected.From(obj)
	if !ok {
		return projectedRecord{}, false
	}

	// Any mark is enough: whoever takes away one or two of them must not thereby hide the object. The watch is on all
	// Roles and RoleBindings for the same reason.
	if o.ScopeHash == "" && o.Owner == "" && o.Source == "" {
		i := convertInherited(obj)

		return projectedRecord{inherited: i}, i != nil
	}

	home := homeOf(o.Owner, o.Source)

	return projectedRecord{
		home: shared(home),
		Projected: facts.Projected{
			ScopeHash: shared(o.ScopeHash), Owner: mark(o.Owner), Source: mark(o.Source), OwnerUID: shared(o.OwnerRef.UID),
			RoleRef: roleReference(o.RoleRef),
			Digest:  o.Digest(obj.GetLabels()[scope.LabelManagedBy]),
			Made:    writtenByAmbit(obj.GetManagedFields()),
		},
	}, home != ""
}

func writtenByAmbit(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		if entries[i].Manager == scope.FieldManager {
			return true
		}
	}

	return false
}

// shared returns the one copy of a string that all records use.
func shared(s string) string { return unique.Make(s).Value() }
