package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ListPlan is the watch list of one ConfigMap. What it holds in the end depends on which members could be served, so it is
// resolved after the grants were applied.
type ListPlan struct {
	// Name is that of the ConfigMap.
	Name string
	// Scopes are the indexes of the living scopes that share it; none when it has to go.
	Scopes []int
	// Live is the ConfigMap as it is, Exists whether it is.
	Live   facts.ConfigMap
	Exists bool

	operatorNamespace string
	claims            map[string][]int
	// finishing are namespaces that are members no longer and stay in the list as long as they are there.
	finishing map[string]struct{}
	// barred are the scopes for which nothing enters.
	barred map[int]struct{}
	// withdrawn are the scopes that claim a member in which something of theirs is gone.
	withdrawn map[string][]int
	// since is when readers last saw the list change, should it have to be written again with the same value.
	reported string
	created  time.Time
}

// ListAction is what to do with a ConfigMap.
type ListAction string

// The actions. ReleaseList takes back Ambit's key and marks and leaves the rest to its owner; DeleteList removes a ConfigMap
// that Ambit made and that holds nothing else. BlockedList is a ConfigMap that is immutable.
const (
	KeepList    ListAction = "keep"
	ApplyList   ListAction = "apply"
	ReleaseList ListAction = "release"
	DeleteList  ListAction = "delete"
	BlockedList ListAction = "blocked"
)

// ListWrite is what a ConfigMap should hold.
type ListWrite struct {
	Action ListAction
	// Members are the namespaces of the list, sorted; Value is the list as it is written.
	Members []string
	Value   string
	// Generation counts the changes of the list, this one included.
	Generation int64
	// Since is set when the list is written again without having changed. Before is when it had changed the time before.
	Since, Before time.Time
	// Exists says whether the ConfigMap does; Created that Ambit made it, or makes it now.
	Exists, Created bool
	// Version is the resource version that the decision was made from.
	Version uint64
}

func (p *Plan) planLists(f *facts.Facts) {
	lists := map[string]*ListPlan{}

	for name, cm := range f.OperatorNamespace.ConfigMaps {
		if cm.Ours() {
			lists[name] = newListPlan(name, f)
		}
	}

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if s.Scope.WatchList == "" || s.Scope.Deleting() {
			continue
		}

		list, found := lists[s.Scope.WatchList]
		if !found {
			list = newListPlan(s.Scope.WatchList, f)
			lists[s.Scope.WatchList] = list
		}

		list.claim(i, s)
	}

	for _, name := range slices.Sorted(maps.Keys(lists)) {
		lists[name].reported = p.reportedList(lists[name])
		p.Lists = append(p.Lists, *lists[name])
	}
}

func newListPlan(name string, f *facts.Facts) *ListPlan {
	cm, exists := f.OperatorNamespace.ConfigMaps[name]

	return &ListPlan{
		Name: name, Live: cm, Exists: exists, operatorNamespace: f.OperatorNamespace.Name,
		claims: map[string][]int{}, finishing: map[string]struct{}{}, withdrawn: map[string][]int{}, barred: map[int]struct{}{},
	}
}

func (l *ListPlan) claim(index int, s *ScopePlan) {
	l.Scopes = append(l.Scopes, index)

	if s.Scope.Barred {
		l.barred[index] = struct{}{}
	}

	for _, m := range s.Members {
		l.claims[m] = append(l.claims[m], index)

		if s.IsWithdrawn(m) {
			l.withdrawn[m] = append(l.withdrawn[m], index)
		}
	}

	for j := range s.Finishing {
		l.finishing[s.Finishing[j].Namespace] = struct{}{}
	}

	if l.created.IsZero() || s.Scope.Created.Before(l.created) {
		l.created = s.Scope.Created
	}
}

// reportedList is the list that the statuses of its scopes last spoke of.
func (p *Plan) reportedList(l *ListPlan) string {
	reported := map[string]struct{}{}

	for _, i := range l.Scopes {
		for _, m := range p.Scopes[i].Scope.Reported {
			reported[m] = struct{}{}
		}
	}

	return strings.Join(slices.Sorted(maps.Keys(reported)), ",")
}

// Never says of no member of a scope that something is amiss there.
func Never(int, string) bool { return false }

// Resolve says what to write, given which members miss something that a scope projects there, and in which it was refused. A
// new member enters once every scope that shares the list has its permissions there; one that is in the list stays while it is
// a member, unless what was there is known to be gone and refused again: its operators would fail in all other members, too.
func (l *ListPlan) Resolve(missing, refused func(scope int, namespace string) bool) ListWrite {
	w := ListWrite{Exists: l.Exists, Created: !l.Exists || l.Live.Created, Version: l.Live.Version}

	if len(l.Scopes) == 0 {
		w.Action = l.leave()

		return w
	}

	w.Members = l.members(missing, refused)
	w.Value = strings.Join(w.Members, ",")

	switch {
	case l.Exists && l.Live.HasList && l.Live.List == w.Value && l.intact():
		w.Action = KeepList
	case l.Live.Immutable:
		w.Action = BlockedList
	default:
		w.Action = ApplyList
		w.Since = l.since(w.Value)
		w.Generation = l.Live.Generation

		if w.Before = l.Live.Before; w.Since.IsZero() {
			w.Generation++
			w.Before = l.Live.ChangedAt()
		}
	}

	return w
}

func (l *ListPlan) leave() ListAction {
	switch {
	case l.Live.Created && !l.Live.OtherKeys:
		return DeleteList
	case l.Live.Immutable:
		return BlockedList
	default:
		return ReleaseList
	}
}

func (l *ListPlan) members(missing, refused func(int, string) bool) []string {
	listed := map[string]struct{}{}
	for name := range strings.SplitSeq(l.present(), ",") {
		listed[name] = struct{}{}
	}

	members := []string{l.operatorNamespace}

	for namespace, scopes := range l.claims {
		_, stays := listed[namespace]
		stays = stays && !slices.ContainsFunc(l.withdrawn[namespace], func(i int) bool { return refused(i, namespace) })

		if stays || l.enters(namespace, scopes, missing) {
			members = append(members, namespace)
		}
	}

	for namespace := range l.finishing {
		_, is := listed[namespace]
		if _, claimed := l.claims[namespace]; is && !claimed {
			members = append(members, namespace)
		}
	}

	slices.Sort(members)

	return members
}

// enters says whether a namespace that is not in the list comes into it.
func (l *ListPlan) enters(namespace string, scopes []int, missing func(int, string) bool) bool {
	asked := false

	for _, i := range scopes {
		if _, barred := l.barred[i]; barred {
			continue
		}

		if missing(i, namespace) {
			return false
		}

		asked = true
	}

	return asked
}

// present is the list as Ambit last decided it: what the ConfigMap holds, as long as nobody else changed it, and
// otherwise what the statuses of its scopes say. Nobody enters or leaves by way of an edited ConfigMap. A list that no
// scope knows of was there before Ambit was, and is taken over.
func (l *ListPlan) present() string {
	if l.intact() || l.reported == "" {
		return l.Live.List
	}

	return l.reported
}

// intact says whether the ConfigMap holds the list that Ambit wrote into it last.
func (l *ListPlan) intact() bool {
	return l.Live.HasList && l.Live.ListHash == scope.ListHash(l.Live.List, l.Live.Generation)
}

// since keeps the time of the last change when a write only repairs the list, so that no reader is restarted for a list
// that it knows. Zero means that the write itself is the change.
func (l *ListPlan) since(value string) time.Time {
	marked := l.Live.ListHash == scope.ListHash(value, l.Live.Generation)
	// IBM's operator writes the same members in any order.
	same := sameMembers(l.Live.List, value)

	switch {
	case !l.Live.Since.IsZero() && (marked || same):
		return l.Live.Since
	case marked && l.Live.HasList:
		// Somebody changed the list. The API server does not note that as a change of Ambit's.
		return l.Live.Applied
	case marked, l.Live.HasList && same, !l.Live.Ours() && l.reported == value:
		// Somebody took away the key or the marks, by which the API server notes a change of Ambit's, or the whole
		// ConfigMap. What is known is that no reader of this scope is older than the scope.
		return l.created
	default:
		return time.Time{}
	}
}
