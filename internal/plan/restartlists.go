package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// liveList is a watch list as it is in the cluster.
type liveList struct {
	name, hash string
	written    written
	// scopes are the indexes of those whose operands read it, also of those that are being deleted.
	scopes []int
	// settled says that this plan does not write it, gone that it went with its last scope.
	settled, gone bool
}

// liveLists are the lists of the scopes, and those that went with their last scope, sorted by name.
func (p *Plan) liveLists() []liveList {
	lists, pending := p.abandonedLists(), p.Pending()

	for i := range p.Lists {
		if l := &p.Lists[i]; len(l.Scopes) > 0 {
			lists = append(lists, liveList{
				name: l.Name, hash: l.Live.ListHash, scopes: p.sharing(l.Name, l.Scopes),
				settled: ResolveList(l, pending, nil).Action == KeepList,
				written: written{
					at: l.Live.ChangedAt(), version: l.Live.ListVersion, repaired: !l.Live.Since.IsZero(), before: l.Live.Before,
					takenIn: scope.TakenIn(l.Live.List),
				},
			})
		}
	}

	slices.SortFunc(lists, func(a, b liveList) int { return cmp.Compare(a.name, b.name) })

	return lists
}

// abandonedLists are those that went with their last scope. The scope is still there, held by its finalizer; its deletion tells
// the time.
func (p *Plan) abandonedLists() []liveList {
	var lists []liveList

	for i := range p.Scopes {
		s := p.Scopes[i].Scope
		if !s.Deleting() || slices.ContainsFunc(p.Lists, func(l ListPlan) bool { return l.Name == s.WatchList }) {
			continue
		}

		at := slices.IndexFunc(lists, func(l liveList) bool { return l.name == s.WatchList })
		if at < 0 {
			at = len(lists)
			lists = append(lists, liveList{name: s.WatchList, settled: true, gone: true})
		}

		l := &lists[at]
		l.scopes = append(l.scopes, i)
		l.written.version = max(l.written.version, s.Version)

		if s.Deleted.After(l.written.at) {
			l.written.at = s.Deleted
		}
	}

	for i := range lists {
		lists[i].hash = scope.AbsentListHash(lists[i].written.at)
		lists[i].written.takenIn, lists[i].written.gone = scope.TakenIn(""), true
	}

	return lists
}

// readBy are the hashes of the lists that the workload with an index reads, by their names. Nobody changes them.
func (p *Plan) readBy(all *readers, index int) map[string]string {
	if all.reads[index] != nil {
		return all.reads[index]
	}

	template := &all.workloads[index].Template
	all.reads[index] = p.hashesOf(all, template.Reads, template.Labels)

	return all.reads[index]
}

// hashesOf are the hashes of those lists, of all that are named, that the pods with these labels follow.
func (p *Plan) hashesOf(all *readers, named []string, of labels.Set) map[string]string {
	hashes := map[string]string{}

	for _, name := range named {
		at, found := slices.BinarySearchFunc(all.lists, name, func(l liveList, name string) int { return cmp.Compare(l.name, name) })
		if found && len(p.operandOf(all.lists[at].scopes, of)) > 0 {
			hashes[name] = all.lists[at].hash
		}
	}

	return hashes
}

// mergeRestarts leaves one restart for each workload and each bare pod, also where it reads several lists. It relies on their
// order.
func (p *Plan) mergeRestarts() {
	merged := p.Restarts[:0]

	for _, r := range p.Restarts {
		if n := len(merged); n > 0 && isSameReader(&merged[n-1], &r) {
			last := &merged[n-1]
			last.Scopes = union(last.Scopes, r.Scopes, cmp.Compare[int])
			// Where OLM would take an annotation back for one list, it would for the other.
			last.Evict = union(last.Evict, r.Evict, byName)
			last.Wait = max(last.Wait, r.Wait)

			continue
		}

		merged = append(merged, r)
	}

	p.Restarts = merged
}

func isSameReader(a, b *Restart) bool {
	if a.Workload.Kind != "" || b.Workload.Kind != "" {
		return a.Workload == b.Workload
	}

	return slices.Equal(a.Evict, b.Evict)
}

func union[T comparable](a, b []T, order func(T, T) int) []T {
	out := slices.Concat(a, b)
	slices.SortFunc(out, order)

	return slices.Compact(out)
}
