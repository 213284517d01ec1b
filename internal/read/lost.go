package read

import (
	"maps"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxLost bounds the deletions that are remembered. Once they are forgotten, a member that lost some of its copies cannot be told
// from one that is yet to get them, and is left as it is.
const maxLost = 10_000

// lostCopies are the copies that somebody else was seen to delete, until they come again, by the bucket in which they were and by
// namespace.
type lostCopies struct {
	slots map[bucket]map[string]map[facts.Slot]struct{}
	count int
}

func slotOf(key projectedKey, record *facts.Projected) facts.Slot {
	return facts.Slot{ScopeHash: record.ScopeHash, Kind: key.Kind, Slot: record.Slot}
}

// note records that a copy was deleted.
func (l *lostCopies) note(in bucket, key projectedKey, record *facts.Projected) {
	if l.slots == nil || l.count >= maxLost {
		l.slots, l.count = map[bucket]map[string]map[facts.Slot]struct{}{}, 0
	}

	if l.slots[in] == nil {
		l.slots[in] = map[string]map[facts.Slot]struct{}{}
	}

	if l.slots[in][key.namespace] == nil {
		l.slots[in][key.namespace] = map[facts.Slot]struct{}{}
	}

	l.slots[in][key.namespace][slotOf(key, record)] = struct{}{}
	l.count++
}

// found records that a copy is there.
func (l *lostCopies) found(in bucket, key projectedKey, record *facts.Projected) {
	slots := l.slots[in][key.namespace]
	if _, was := slots[slotOf(key, record)]; !was {
		return
	}

	delete(slots, slotOf(key, record))
	l.count--

	if len(slots) == 0 {
		delete(l.slots[in], key.namespace)
	}
}

// of are those of a bucket, by namespace.
func (l *lostCopies) of(in bucket) map[string]map[facts.Slot]struct{} {
	out := make(map[string]map[facts.Slot]struct{}, len(l.slots[in]))
	for namespace, slots := range l.slots[in] {
		out[namespace] = maps.Clone(slots)
	}

	return out
}
