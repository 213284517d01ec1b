package read

import (
	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxLost bounds the deletions that are remembered. Once they are forgotten, a member that lost some of its copies cannot be told
// from one that is yet to get them, and is left as it is.
const maxLost = 10_000

// lostCopies are the copies that somebody else was seen to delete, until they come again: by what they were for, and by their
// names.
type lostCopies struct {
	at map[lostCopy]projectedKey
	by map[projectedKey]lostCopy
}

// lostCopy is what a copy was for.
type lostCopy struct {
	in        bucket
	namespace string
	slot      facts.Slot
}

func lostCopyOf(in bucket, key projectedKey, record *facts.Projected) lostCopy {
	return lostCopy{in, key.namespace, facts.Slot{ScopeHash: record.ScopeHash, Kind: key.Kind, Slot: record.Slot}}
}

// note records that a copy was deleted.
func (l *lostCopies) note(in bucket, key projectedKey, record *facts.Projected) {
	l.forget(key)

	if l.at == nil || len(l.by) >= maxLost {
		l.at, l.by = map[lostCopy]projectedKey{}, map[projectedKey]lostCopy{}
	}

	lost := lostCopyOf(in, key, record)
	delete(l.by, l.at[lost])
	l.at[lost], l.by[key] = key, lost
}

// found records that a copy is there.
func (l *lostCopies) found(in bucket, key projectedKey, record *facts.Projected) {
	if noted, was := l.at[lostCopyOf(in, key, record)]; was {
		l.forget(noted)
	}
}

// forget records that a copy was not lost: it was Ambit that deleted it.
func (l *lostCopies) forget(key projectedKey) {
	if lost, was := l.by[key]; was {
		delete(l.by, key)
		delete(l.at, lost)
	}
}

// of are those of a bucket, by namespace.
func (l *lostCopies) of(in bucket) map[string]map[facts.Slot]struct{} {
	out := map[string]map[facts.Slot]struct{}{}

	for lost := range l.at {
		if lost.in != in {
			continue
		}

		if out[lost.namespace] == nil {
			out[lost.namespace] = map[facts.Slot]struct{}{}
		}

		out[lost.namespace][lost.slot] = struct{}{}
	}

	return out
}
