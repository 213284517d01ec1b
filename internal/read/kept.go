package read

import "github.com/ambit-k8s/ambit/internal/projected"

// keptTable is what kept tables of any records have in common.
type keptTable interface {
	drop(key projectedKey, version uint64)
	forget(namespace string)
	addVersions(to map[projectedKey]uint64, kind projected.Kind)
	quietly(change func())
}

// kept holds records of what anybody may write into a namespace, in any number, by those whom the records concern.
type kept[R comparable, C comparable] struct {
	// most is how many are remembered of one namespace; 0 is all of them. Where sizeOf is set, room is how large those may be
	// together.
	most, room int
	sizeOf     func(R) int
	// concerns says whom a record is about, and changed is notified of each of them for whom something is different.
	concerns func(R) C
	changed  func(C)

	rows map[projectedKey]row[R]
	// count says how many there are of a namespace, and size how large they are; about finds them by whom they are about.
	count, size map[string]int
	about       map[C]map[projectedKey]struct{}
}

func newKept[R, C comparable](most int, concerns func(R) C) kept[R, C] {
	return kept[R, C]{
		most: most, concerns: concerns,
		rows: map[projectedKey]row[R]{}, count: map[string]int{}, size: map[string]int{}, about: map[C]map[projectedKey]struct{}{},
	}
}

// set puts the record of an object into the table, or takes the object out where it has none, and says whether it has one.
func (t *kept[R, C]) set(key projectedKey, record *R, a arrival) bool {
	if record == nil {
		t.drop(key, a.version)
	} else {
		t.put(key, *record, a)
	}

	return record != nil
}

// quietly changes the table without notifying anybody.
func (t *kept[R, C]) quietly(change func()) {
	changed := t.changed
	t.changed = func(C) {}

	change()

	t.changed = changed
}

func (t *kept[R, C]) put(key projectedKey, record R, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.version {
		return
	}

	if !t.hasRoom(key, record) {
		t.drop(key, a.version) // What was known of it is so no longer.

		return
	}

	if known {
		t.remove(key)
	}

	concerned := t.concerns(record)
	if t.about[concerned] == nil {
		t.about[concerned] = map[projectedKey]struct{}{}
	}

	t.rows[key], t.about[concerned][key] = row[R]{record, a.version}, struct{}{}
	t.count[key.namespace]++
	t.size[key.namespace] += t.sizeIs(record)

	if known && before.record == record {
		return
	}

	if old := t.concerns(before.record); known && old != concerned {
		t.changed(old)
	}

	t.changed(concerned)
}

// hasRoom says whether a record may be remembered beside the others of its namespace.
func (t *kept[R, C]) hasRoom(key projectedKey, record R) bool {
	before, known := t.rows[key]
	if t.most > 0 && t.count[key.namespace] >= t.most && !known {
		return false
	}

	others := t.size[key.namespace]
	if known {
		others -= t.sizeIs(before.record)
	}

	return others+t.sizeIs(record) <= t.room
}

func (t *kept[R, C]) sizeIs(record R) int {
	if t.sizeOf == nil {
		return 0
	}

	return t.sizeOf(record)
}

func (t *kept[R, C]) drop(key projectedKey, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.version {
		return
	}

	t.remove(key)
	t.changed(t.concerns(before.record))
}

func (t *kept[R, C]) remove(key projectedKey) {
	record := t.rows[key].record
	concerned := t.concerns(record)

	delete(t.rows, key)
	delete(t.about[concerned], key)

	if len(t.about[concerned]) == 0 {
		delete(t.about, concerned)
	}

	t.size[key.namespace] -= t.sizeIs(record)

	if t.count[key.namespace]--; t.count[key.namespace] == 0 {
		delete(t.count, key.namespace)
		delete(t.size, key.namespace)
	}
}

// forget takes out what is in a namespace, and notifies nobody.
func (t *kept[R, C]) forget(namespace string) {
	for key := range t.rows {
		if t.count[namespace] == 0 {
			return
		}

		if key.namespace == namespace {
			t.remove(key)
		}
	}
}

func (t *kept[R, C]) addVersions(to map[projectedKey]uint64, kind projected.Kind) {
	for key, row := range t.rows {
		if key.Kind == kind {
			to[key] = row.version
		}
	}
}
