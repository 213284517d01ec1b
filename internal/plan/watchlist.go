package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ListPlan is the watch list of one ConfigMap. What it holds in the end depends on which members could be served, so ResolveList
// decides it after the grants were applied.
type ListPlan struct {
	// Name is that of the ConfigMap.
	Name string
	// Scopes are the indexes of the living scopes that share it; none when it has to go.
	Scopes []int
	// Waits says that there is no list yet, and that of none of these scopes it is known that its writer may write it.
	Waits bool
	// Live is the ConfigMap as it is, Exists whether it is.
	Live   facts.ConfigMap
	Exists bool

	// Members are the namespaces that may be in it, sorted by name.
	Members []ListMember
	// Reported is the list that the statuses of its scopes last spoke of, and Oldest when the first of them was made: since then
	// readers may know the list, should it have to be written again with the same value.
	Reported string
	Oldest   time.Time
}

// ListMember is a namespace that may be in a list.
type ListMember struct {
	Namespace string
	// Stays says that it is in the list, or belongs there whatever happens, Unless something is refused there that one of these
	// scopes projects: what was there is known to be gone, and its operators would fail in all other members, too. A scope that
	// never had anything there takes no member from another one.
	Stays  bool
	Unless []int
	// Enters are the scopes that have to have their permissions there before it comes in; without any, it does not. Neighbouring
	// members that wait for the same scopes share one slice.
	Enters []int
}

// ListAction is what to do with a ConfigMap.
type ListAction string

// The actions. KeepList is also what is done with a list that is not to be written yet; it has no members then. ReleaseList
// takes back Ambit's key and marks and leaves the rest to its owner; DeleteList removes a ConfigMap that Ambit made and that
// holds nothing else. BlockedList is a ConfigMap that is immutable.
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
	// Since is set when the list is written again without having changed. Before is the time of the change before the latest one.
	Since, Before time.Time
	// Exists says whether the ConfigMap does; Created that Ambit made it, or makes it now. Intact says of one that is left that it
	// holds the list that Ambit wrote last.
	Exists, Created, Intact bool
	// Empties says of one that is deleted that its finalizers keep it, so that its list has to go before.
	Empties bool
	// Version is the resource version that the decision was made from.
	Version uint64
}

func (p *Plan) planLists(f *facts.Facts) {
	lists := map[string]*ListPlan{}

	for name, cm := range f.OperatorNamespace.ConfigMaps {
		if !cm.IsLeft() && p.isOurs(name, &cm) {
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

		list.Scopes = append(list.Scopes, i)

		if list.Oldest.IsZero() || s.Scope.Created.Before(list.Oldest) {
			list.Oldest = s.Scope.Created
		}
	}

	for _, name := range slices.Sorted(maps.Keys(lists)) {
		list := lists[name]
		list.Reported = p.reportedList(list)
		somebodyMay := slices.ContainsFunc(list.Scopes, func(i int) bool { return !p.Scopes[i].Scope.Barred })
		list.Waits = !list.Live.HasList && list.Reported == "" && !somebodyMay
		list.Members = p.listMembers(list, f, somebodyMay)
		p.Lists = append(p.Lists, *list)
	}
}

// isOurs says whether a ConfigMap holds a list that is Ambit's to write and to take back: one that the API server knows Ambit to
// have written; or, where it has forgotten that, one with Ambit's marks that has the name of a scope's list. Under another name
// these are a copy, of which everything is its owner's.
func (p *Plan) isOurs(name string, cm *facts.ConfigMap) bool {
	return !cm.Applied.IsZero() ||
		cm.Ours() && slices.ContainsFunc(p.Scopes, func(s ScopePlan) bool { return s.Scope.WatchList == name })
}

func newListPlan(name string, f *facts.Facts) *ListPlan {
	cm, exists := f.OperatorNamespace.ConfigMaps[name]

	return &ListPlan{Name: name, Live: cm, Exists: exists}
}

// listMembers are the namespaces that may be in a list: the operator namespace, the members of its scopes, and namespaces that
// are no longer members and stay while they finish. somebodyMay says whether there is a scope that may write the list.
func (p *Plan) listMembers(l *ListPlan, f *facts.Facts, somebodyMay bool) []ListMember {
	if len(l.Scopes) == 0 {
		return nil
	}

	// Nor does a namespace stay for a scope that may not bring one in, and has nothing there: the operators would look for what
	// the scope that left it has taken away.
	claims := slices.DeleteFunc(p.claims(l), func(c Member) bool {
		return c.Scope >= 0 && somebodyMay && p.Scopes[c.Scope].Scope.MayNotList && !p.Scopes[c.Scope].grants(f, c.Namespace)
	})
	listed := sets.New(strings.Split(l.present(), ",")...).Insert(p.Key.Namespace)
	members := make([]ListMember, 0, len(claims))

	for len(claims) > 0 {
		namespace, end := claims[0].Namespace, 1
		for end < len(claims) && claims[end].Namespace == namespace {
			end++
		}

		m := p.listMember(namespace, claims[:end], listed.Has(namespace))
		if n := len(members); n > 0 && slices.Equal(m.Enters, members[n-1].Enters) {
			m.Enters = members[n-1].Enters
		}

		members, claims = append(members, m), claims[end:]
	}

	return members
}

// listMember is a namespace that scopes want in a list, and whether it stays as it is in there.
func (p *Plan) listMember(namespace string, claims []Member, stays bool) ListMember {
	m, isKept := ListMember{Namespace: namespace, Stays: stays}, false

	for _, c := range claims {
		if c.Scope < 0 {
			continue
		}

		s := &p.Scopes[c.Scope]
		if stays && contains(s.Withdrawn, namespace) {
			m.Unless = append(m.Unless, c.Scope)
		} else {
			isKept = true
		}

		if !s.Scope.Barred {
			m.Enters = append(m.Enters, c.Scope)
		}
	}

	// Where some scope lost nothing, what is refused to another one that never had anything there says nothing.
	if isKept {
		m.Unless = slices.DeleteFunc(m.Unless, func(i int) bool { return !p.Scopes[i].IsReported(namespace) })
	}

	return m
}

// claims are the namespaces of a list with the scopes that have them as members, or -1 where none has to, sorted.
func (p *Plan) claims(l *ListPlan) []Member {
	n := 1
	for _, i := range l.Scopes {
		n += len(p.Scopes[i].Members) + len(p.Scopes[i].Finishing)
	}

	claims := append(make([]Member, 0, n), Member{-1, p.Key.Namespace})

	for _, i := range l.Scopes {
		s := &p.Scopes[i]
		for _, m := range s.Members {
			claims = append(claims, Member{i, m})
		}

		for j := range s.Finishing {
			claims = append(claims, Member{-1, s.Finishing[j].Namespace})
		}
	}

	slices.SortFunc(claims, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Scope, b.Scope))
	})

	return claims
}

// reportedList is the list that the statuses of its scopes last spoke of.
func (p *Plan) reportedList(l *ListPlan) string {
	reported := sets.Set[string]{}
	for _, i := range l.Scopes {
		reported.Insert(p.Scopes[i].Scope.Reported...)
	}

	return strings.Join(sets.List(reported), ",")
}

// present is the list as Ambit last decided it: what the ConfigMap holds, as long as nobody else changed it, and
// otherwise what the statuses of its scopes say. Nobody enters or leaves by way of an edited ConfigMap. A list that no
// scope knows of was there before Ambit was, and is taken over.
func (l *ListPlan) present() string {
	if l.intact() || l.Reported == "" {
		return l.Live.List
	}

	return l.Reported
}

// intact says whether the ConfigMap holds the list that Ambit wrote into it last.
func (l *ListPlan) intact() bool {
	return l.Live.HasList && l.Live.ListHash == scope.ListHash(l.Live.List, l.Live.Generation)
}
