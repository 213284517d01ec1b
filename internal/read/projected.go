package read

import (
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"
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
	rows    map[projectedKey]row[projectedRecord]
	byHome  map[string]map[projectedKey]struct{}
	changed func(homes ...string)
}

type projectedKey struct {
	namespace string
	facts.ProjectedKey
}

type projectedRecord struct {
	facts.Projected

	home string
}

func (t *projectedTable) put(key projectedKey, record projectedRecord, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.version {
		return
	}

	if t.rows == nil {
		t.rows, t.byHome = map[projectedKey]row[projectedRecord]{}, map[string]map[projectedKey]struct{}{}
	}

	t.rows[key] = row[projectedRecord]{record, a.version}

	if known && before.record == record {
		return
	}

	if known && before.record.home != record.home {
		t.unindex(before.record.home, key)
		t.changed(before.record.home)
	}

	if t.byHome[record.home] == nil {
		t.byHome[record.home] = map[projectedKey]struct{}{}
	}

	t.byHome[record.home][key] = struct{}{}
	t.changed(record.home)
}

func (t *projectedTable) drop(key projectedKey, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.version {
		return
	}

	delete(t.rows, key)
	t.unindex(before.record.home, key)
	t.changed(before.record.home)
}

func (t *projectedTable) unindex(homeName string, key projectedKey) {
	delete(t.byHome[homeName], key)

	if len(t.byHome[homeName]) == 0 {
		delete(t.byHome, homeName)
	}
}

func (t *projectedTable) of(homeName string) map[string]map[facts.ProjectedKey]facts.Projected {
	out := map[string]map[facts.ProjectedKey]facts.Projected{}

	for key := range t.byHome[homeName] {
		held := out[key.namespace]
		if held == nil {
			held = map[facts.ProjectedKey]facts.Projected{}
			out[key.namespace] = held
		}

		r := t.rows[key]
		r.record.Version = r.version
		held[key.ProjectedKey] = r.record.Projected
	}

	return out
}

// sink returns the receiver of the watch of one kind.
func (t *projectedTable) sink(kind projected.Kind) sink[projectedRecord] {
	full := func(key types.NamespacedName) projectedKey {
		return projectedKey{shared(key.Namespace), facts.ProjectedKey{Kind: kind, Name: shared(key.Name)}}
	}

	return sink[projectedRecord]{
		convert: convertProjected,
		put: func(key types.NamespacedName, r projectedRecord, a arrival) {
			t.put(full(key), r, a)
		},
		drop: func(key types.NamespacedName, version uint64) { t.drop(full(key), version) },
		keys: func() map[types.NamespacedName]uint64 {
			out := map[types.NamespacedName]uint64{}

			for key, r := range t.rows {
				if key.Kind == kind {
					out[types.NamespacedName{Namespace: key.namespace, Name: key.Name}] = r.version
				}
			}

			return out
		},
	}
}

func convertProjected(obj client.Object) (projectedRecord, bool) {
	var o projected.Object

	switch live := obj.(type) {
	case *rbacv1.Role:
		o = projected.FromRole(live)
	case *rbacv1.RoleBinding:
		o = projected.FromRoleBinding(live)
	default:
		return projectedRecord{}, false
	}

	// Any mark is enough: whoever takes away one or two of them must not thereby hide the object. The watch is on all
	// Roles and RoleBindings for the same reason.
	if o.ScopeHash == "" && o.Owner == "" && o.Source == "" {
		return projectedRecord{}, false
	}

	home := scope.OwnerNamespace(o.Owner)
	if source, ok := projected.ParseSource(o.Source); ok && home == "" {
		home = source.Namespace
	}

	return projectedRecord{
		home: shared(home),
		Projected: facts.Projected{
			ScopeHash: shared(o.ScopeHash), Owner: shared(o.Owner), Source: shared(o.Source),
			RoleRef: rbacv1.RoleRef{
				APIGroup: shared(o.RoleRef.APIGroup), Kind: shared(o.RoleRef.Kind), Name: shared(o.RoleRef.Name),
			},
			Digest: o.Digest(obj.GetLabels()[scope.LabelManagedBy]),
			Made:   writtenByAmbit(obj.GetManagedFields()),
		},
	}, true
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
