package read

import (
	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxLost bounds the deletions that are remembered. Once they are forgotten, a member that lost some of its copies cannot be told
// from one that is yet to get them, and is left as it is.
const maxLost = 10_000

// lostCopies are the copies that somebody else was seen to delete, until they come again, by the bucket in which they were and by
// namespace.
type lostCopies struct {
	slots map[bucket]map[string]map[facts.Slot]projectedKey
	// by says under which slot a copy is noted.
	by map[projectedKey]lostCopy
}

type lostCopy struct {
	in   bucket
	slot facts.Slot
}

func slotOf(key projectedKey, record *facts.Projected) facts.Slot {
	return facts.Slot{ScopeHash: record.ScopeHash, Kind: key.Kind, Slot: record.Slot}
}

// note records that a copy was deleted.
func (l *lostCopies) note(in bucket, key projectedKey, record *facts.Projected) {
	l.forget(key)

	if l.slots == nil || len(l.by) >= maxLost {
		l.slots, l.by = map[bucket]map[string]map[facts.Slot]projectedKey{}, map[projectedKey]lostCopy{}
	}

	if l.slots[in] == nil {
		l.slots[in] = map[string]map[facts.Slot]projectedKey{}
	}

	if l.slots[in][key.namespace] == nil {
		l.slots[in][key.namespace] = map[facts.Slot]projectedKey{}
	}

	slot := slotOf(key, record)
	delete(l.by, l.slots[in][key.namespace][slot])
	l.slots[in][key.namespace][slot] = key
	l.by[key] = lostCopy{in, slot}
}

// found records that a copy is there.
func (l *lostCopies) found(in bucket, key projectedKey, record *facts.Projected) {
	if noted, was := l.slots[in][key.namespace][slotOf(key, record)]; was {
		l.forget(noted)
	}
}

// forget records that a copy was not lost: it was Ambit that deleted it.
func (l *lostCopies) forget(key projectedKey) {
	noted, was := l.by[key]
	if !was {
		return
	}

	delete(l.by, key)
	delete(l.slots[noted.in][key.namespace], noted.slot)

	if len(l.slots[noted.in][key.namespace]) == 0 {
		delete(l.slots[noted.in], key.namespace)
	}

	if len(l.slots[noted.in]) == 0 {
		delete(l.slots, noted.in)
	}
}

// of are those of a bucket, by namespace.
func (l *lostCopies) of(in bucket) map[string]map[facts.Slot]struct{} {
	out := make(map[string]map[facts.Slot]struct{}, len(l.slots[in]))

	for namespace, slots := range l.slots[in] {
		out[namespace] = make(map[facts.Slot]struct{}, len(slots))
		for slot := range slots {
			out[namespace][slot] = struct{}{}
		}
	}

	return out
}
