package read

import (
	"maps"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxLost bounds the deletions that are remembered. Who forgets them tells a member that lost a part of what it had from one to
// which something is yet to come no more, and leaves it as it is.
const maxLost = 10_000

// lostCopies are the copies that somebody else was seen to delete, until they come again, by reconcile key and namespace.
type lostCopies struct {
	slots map[string]map[string]map[facts.Slot]struct{}
	count int
}

func slotOf(key projectedKey, record *facts.Projected) facts.Slot {
	return facts.Slot{ScopeHash: record.ScopeHash, Kind: key.Kind, Slot: record.Slot}
}

// note records that a copy was deleted.
func (l *lostCopies) note(reconcileKey string, key projectedKey, record *facts.Projected) {
	if l.slots == nil || l.count >= maxLost {
		l.slots, l.count = map[string]map[string]map[facts.Slot]struct{}{}, 0
	}

	if l.slots[reconcileKey] == nil {
		l.slots[reconcileKey] = map[string]map[facts.Slot]struct{}{}
	}

	if l.slots[reconcileKey][key.namespace] == nil {
		l.slots[reconcileKey][key.namespace] = map[facts.Slot]struct{}{}
	}

	l.slots[reconcileKey][key.namespace][slotOf(key, record)] = struct{}{}
	l.count++
}

// found records that a copy is there.
func (l *lostCopies) found(reconcileKey string, key projectedKey, record *facts.Projected) {
	in := l.slots[reconcileKey][key.namespace]
	if _, was := in[slotOf(key, record)]; !was {
		return
	}

	delete(in, slotOf(key, record))
	l.count--

	if len(in) == 0 {
		delete(l.slots[reconcileKey], key.namespace)
	}
}

// of are those of a reconcile key, by namespace.
func (l *lostCopies) of(reconcileKey string) map[string]map[facts.Slot]struct{} {
	out := make(map[string]map[facts.Slot]struct{}, len(l.slots[reconcileKey]))
	for namespace, slots := range l.slots[reconcileKey] {
		out[namespace] = maps.Clone(slots)
	}

	return out
}
