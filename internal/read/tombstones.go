package read

import "time"

// deletionMemory is how long a deletion is remembered at least: longer than the answer to a write may be under way.
const deletionMemory = 2 * time.Minute

// tombstones remember at which version something was deleted. A watch may report a deletion before the answer to an earlier
// write arrives; without a tombstone, that answer would bring the object back to life, and nothing would ever say otherwise. Or
// Ambit deletes what it wrote before the watch reports the write.
type tombstones[K comparable] struct {
	recent, older map[K]uint64
	since         time.Time
}

func (g *tombstones[K]) record(key K, version uint64) {
	if version == 0 {
		return // No version is known: what comes next is newer.
	}

	if time.Since(g.since) > deletionMemory {
		g.recent, g.older, g.since = map[K]uint64{}, g.recent, time.Now()
	}

	g.recent[key] = version
}

// holds says whether an object was deleted after it had this version.
func (g *tombstones[K]) holds(key K, version uint64) bool {
	return version != 0 && (version <= g.recent[key] || version <= g.older[key])
}
