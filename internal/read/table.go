package read

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
)

// table holds the records of one kind.
type table[R any] struct {
	rows       map[types.NamespacedName]row[R]
	tombstones tombstones[types.NamespacedName]
	// carryOver lets a record take over from the one before it what its object does not say. Optional.
	carryOver func(before *R, now R, a arrival) R
	// changed is notified of each difference; before or after is nil when the record appears or disappears. Optional.
	changed func(key types.NamespacedName, before, after *R)
}

type row[R any] struct {
	record  R
	version uint64
}

func (t *table[R]) put(key types.NamespacedName, record R, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.version || t.tombstones.holds(key, a.version) {
		return
	}

	var old *R
	if known {
		old = &before.record
	}

	if t.carryOver != nil {
		record = t.carryOver(old, record, a)
	}

	if t.rows == nil {
		t.rows = map[types.NamespacedName]row[R]{}
	}

	t.rows[key] = row[R]{record, a.version}

	if t.changed != nil && (!known || !reflect.DeepEqual(before.record, record)) {
		t.changed(key, old, &record)
	}
}

func (t *table[R]) drop(key types.NamespacedName, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.version {
		return
	}

	t.tombstones.record(key, version)
	delete(t.rows, key)

	if t.changed != nil {
		t.changed(key, &before.record, nil)
	}
}

// dropOwn takes out what Ambit deleted. A watch that is late still tells of what Ambit wrote before that.
func (t *table[R]) dropOwn(key types.NamespacedName) {
	t.tombstones.record(key, t.rows[key].version)
	t.drop(key, 0)
}

// byName are the records by the names of their objects.
func (t *table[R]) byName() map[string]R {
	out := make(map[string]R, len(t.rows))
	for key, r := range t.rows {
		out[key.Name] = r.record
	}

	return out
}

func (t *table[R]) keys() map[types.NamespacedName]uint64 {
	out := make(map[types.NamespacedName]uint64, len(t.rows))
	for k, r := range t.rows {
		out[k] = r.version
	}

	return out
}
