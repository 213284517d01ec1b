package install

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// lineage is which CSVs of a namespace replace which, worked out once for all of them: anybody who may write CSVs may write
// hundreds. A CSV replaces one other at most, through that one the CSV which that replaces, and so on. One that would replace
// itself, directly or through others, replaces nothing; such a cycle counts as one CSV, and is replaced as a whole.
type lineage struct {
	csvs []*olm.ClusterServiceVersion
	// cycle is where a cycle of CSVs is gathered: one of them for all; every other CSV is its own.
	cycle map[string]string
	// by are the CSVs that directly replace one, or one of its cycle.
	by map[string][]*olm.ClusterServiceVersion
	// older says whether a CSV replaces one that is there.
	older map[string]bool
	// enter and leave are when a walk from the oldest to the newest comes to a CSV and leaves it for good: what it comes to in
	// between replaces that one.
	enter, leave map[string]int
	// oldestFirst are those that replace another, each after that one.
	oldestFirst []*olm.ClusterServiceVersion
	// succeeded says whether one that replaces a CSV, in one step or in several, has succeeded.
	succeeded map[string]bool
}

// newLineage works that out, where runs says whether a CSV has succeeded.
func newLineage(csvs []*olm.ClusterServiceVersion, runs func(*olm.ClusterServiceVersion) bool) *lineage {
	l := &lineage{
		csvs: csvs, cycle: make(map[string]string, len(csvs)), by: map[string][]*olm.ClusterServiceVersion{},
		older: map[string]bool{}, enter: map[string]int{}, leave: map[string]int{}, succeeded: map[string]bool{},
	}

	replaced := make(map[string]string, len(csvs))
	for _, csv := range csvs {
		replaced[csv.Name] = csv.Spec.Replaces
	}

	l.findCycles(replaced)

	for _, csv := range csvs {
		at := l.cycle[csv.Spec.Replaces]

		// One of a cycle replaces itself, or one that is gathered where it is.
		if _, there := replaced[csv.Spec.Replaces]; there && at != l.cycle[csv.Name] {
			l.by[at] = append(l.by[at], csv)
			l.older[csv.Name] = true
		}
	}

	l.walk(runs)

	return l
}

// findCycles follows each CSV to what it replaces until it comes to one that was seen before: if that was on the same way, it is
// a cycle.
func (l *lineage) findCycles(replaced map[string]string) {
	way := make(map[string]string, len(l.csvs))

	for _, csv := range l.csvs {
		at := csv.Name

		for {
			if _, there := replaced[at]; !there {
				break
			}

			if from, seen := way[at]; seen {
				for next := replaced[at]; from == csv.Name && next != at; next = replaced[next] {
					l.cycle[next] = at
				}

				break
			}

			way[at], l.cycle[at] = csv.Name, at
			at = replaced[at]
		}
	}
}

// walk goes from the oldest to the newest, without a call for each: a chain may have hundreds.
func (l *lineage) walk(runs func(*olm.ClusterServiceVersion) bool) {
	type step struct {
		name  string
		leave bool
	}

	clock := 0

	for _, csv := range l.csvs {
		if l.older[csv.Name] || l.cycle[csv.Name] != csv.Name {
			continue
		}

		for todo := []step{{name: csv.Name}}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			clock++

			if !at.leave {
				l.enter[at.name] = clock
				todo = append(todo, step{at.name, true})

				for _, newer := range l.by[at.name] {
					todo = append(todo, step{name: newer.Name})
					l.oldestFirst = append(l.oldestFirst, newer)
				}

				continue
			}

			l.leave[at.name] = clock

			for _, newer := range l.by[at.name] {
				l.succeeded[at.name] = l.succeeded[at.name] || l.succeeded[newer.Name] || runs(newer)
			}
		}
	}
}

// replaces says whether one CSV replaces another, in one step or in several.
func (l *lineage) replaces(newer, older *olm.ClusterServiceVersion) bool {
	of := l.cycle[older.Name]

	return l.older[newer.Name] && newer.Name != of && l.enter[of] < l.enter[newer.Name] && l.enter[newer.Name] < l.leave[of]
}

// Replaced are the names of those CSVs that are to be deleted once one of them has succeeded, sorted: those that it replaces, and
// itself where another one replaces it.
func Replaced(csv *olm.ClusterServiceVersion, all []*olm.ClusterServiceVersion) []string {
	var out []string

	l := newLineage(all, func(*olm.ClusterServiceVersion) bool { return false }) // It does not matter here.

	for _, other := range all {
		if l.replaces(csv, other) || other.Name == csv.Name && l.next(csv) != nil {
			out = append(out, other.Name)
		}
	}

	slices.Sort(out)

	return out
}

// Newest are those of some CSVs that none of the others replaces, in their order. Those of a cycle do not replace each other.
func Newest(csvs []*olm.ClusterServiceVersion) []*olm.ClusterServiceVersion {
	l := newLineage(csvs, func(*olm.ClusterServiceVersion) bool { return false }) // It does not matter here.

	return slices.DeleteFunc(slices.Clone(csvs), func(csv *olm.ClusterServiceVersion) bool { return l.next(csv) != nil })
}

// next is a CSV that replaces one, directly if there is such a one; nil when nothing does.
func (l *lineage) next(csv *olm.ClusterServiceVersion) *olm.ClusterServiceVersion {
	by := l.by[l.cycle[csv.Name]]

	for _, newer := range by {
		if newer.Spec.Replaces == csv.Name {
			return newer
		}
	}

	if len(by) > 0 {
		return by[0]
	}

	return nil
}

// spread says of each CSV, by name, whether a condition holds for it or for one that it replaces.
func (l *lineage) spread(is func(*olm.ClusterServiceVersion) bool) map[string]bool {
	out, gathered := make(map[string]bool, len(l.csvs)), make(map[string]bool, len(l.csvs))

	for _, csv := range l.csvs {
		out[csv.Name] = is(csv)
		gathered[l.cycle[csv.Name]] = gathered[l.cycle[csv.Name]] || out[csv.Name]
	}

	for _, csv := range l.oldestFirst {
		out[csv.Name] = out[csv.Name] || gathered[l.cycle[csv.Spec.Replaces]]
		gathered[csv.Name] = out[csv.Name]
	}

	return out
}
