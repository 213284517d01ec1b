package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// resolveMembers unites the named and the selected namespaces. The operator namespace is a member without being projected to.
func (p *ScopePlan) resolveMembers(f *facts.Facts) {
	members := map[string]struct{}{}

	in := &p.Scope.Members
	p.Everywhere = in.Everywhere && (!in.Unconfirmed || !p.isInNamespaces(f))

	switch {
	case p.Everywhere:
		p.Members = []string{wholeCluster}

		return
	case in.Everywhere, in.Kept:
		p.Selection.Problem = in.Problem
		p.Members = p.present(f)

		return
	}

	for _, name := range p.Scope.Members.Named {
		if p.Scope.Mirrors(name) {
			continue
		}

		ns, found := f.Namespaces[name]
		if !found || ns.Terminating || ns.Closed != "" {
			p.Absent = append(p.Absent, Absent{Namespace: name, Terminating: ns.Terminating, Closed: ns.Closed})

			continue
		}

		members[name] = struct{}{}
	}

	if in.Cluster {
		members[wholeCluster] = struct{}{}
	}

	p.selectMembers(f, members)
	slices.SortFunc(p.Absent, func(a, b Absent) int { return cmp.Compare(a.Namespace, b.Namespace) })

	p.Members = slices.Sorted(maps.Keys(members))
}

func (p *ScopePlan) selectMembers(f *facts.Facts, members map[string]struct{}) {
	selector, problem := p.Scope.Members.Selector, p.Scope.Members.Problem
	p.Selection = Selection{Asked: selector != nil || problem != "", Problem: problem}

	// A selector that matches everything is one that says nothing; the compiler refuses it, and so does this.
	if selector == nil || selector.Empty() {
		return
	}

	for name, ns := range f.Namespaces {
		if scope.IsSystemNamespace(name, f.AmbitNamespace) || !ns.IsSelected(selector) {
			continue
		}

		p.Selection.Matched++

		switch named := contains(p.Scope.Members.Named, name); {
		case p.Scope.Mirrors(name):
		case !ns.Terminating:
			members[name] = struct{}{}
		case !named:
			p.Absent = append(p.Absent, Absent{Namespace: name, Terminating: true})
		}
	}
}

// wholeCluster is the "namespace" of what has none.
const wholeCluster = ""

// present returns the namespaces in which something of the scope is and may stay.
func (p *ScopePlan) present(f *facts.Facts) []string {
	var out []string

	for name := range f.Projected {
		if ns, exists := f.Namespaces[name]; exists && !ns.Terminating && p.holds(f, name, "") {
			out = append(out, name)
		}
	}

	slices.Sort(out)

	return out
}

// isInNamespaces says whether what the scope's resource has now is in namespaces, and nothing of it in the whole cluster.
// What an earlier resource of the same name has left behind does not count.
func (p *ScopePlan) isInNamespaces(f *facts.Facts) bool {
	if p.holds(f, wholeCluster, p.Scope.OwnerUID) {
		return false
	}

	for name := range f.Projected {
		if p.holds(f, name, p.Scope.OwnerUID) {
			return true
		}
	}

	return false
}

// holds says whether something that was made for the scope is in a namespace; for a resource of this UID, if one is given. A
// tenant knows names that Ambit gave in their namespace, and can make bindings of these names; but nobody else can make one to
// a ClusterRole that Ambit made for a template.
func (p *ScopePlan) holds(f *facts.Facts, namespace, ownerUID string) bool {
	for _, live := range f.Projected[namespace] {
		if p.isMarked(live) && (ownerUID == "" || live.Owners == ownerUID) && (namespace == wholeCluster || bindsMade(f, live)) {
			return true
		}
	}

	return false
}

// bindsMade says whether an object binds a ClusterRole that Ambit made, also one that is gone.
func bindsMade(f *facts.Facts, live *facts.Projected) bool {
	if f.Names == nil {
		return true
	}

	_, there := f.Projected[wholeCluster][facts.ProjectedKey{Kind: projected.ClusterRole, Name: live.RoleName}]
	tag, is := f.Names.TagIn(projected.ClusterRole, wholeCluster, live.RoleName)

	return live.RoleKind == string(projected.ClusterRole) && (there || is && tag == f.Names.Tag(f.Key))
}

// staysWithNamespace says whether a copy is left to be deleted with its namespace; exact says that it is as it should be. One
// that its finalizers would keep is taken away, and so is a binding to the ClusterRole of a template that is not exact: whoever
// it binds would hold what that gains, for as long as somebody keeps the namespace.
func (p *ScopePlan) staysWithNamespace(f *facts.Facts, namespace string, live *facts.Projected, exact bool) bool {
	if !p.isTerminatingMember(f, namespace) {
		return false
	}

	switch {
	case p.Scope.Installed():
		return true
	case p.Scope.Explicit():
		return exact
	default:
		return !live.Held
	}
}

// isTerminatingMember says whether a namespace is wanted by the scope and on its way out. What was projected there stays
// until the namespace is gone, so that operators can finish their work in it.
func (p *ScopePlan) isTerminatingMember(f *facts.Facts, name string) bool {
	ns, found := f.Namespaces[name]
	if !found || !ns.Terminating || p.Scope.Deleting() || p.lostAuthorization(f, name) {
		return false
	}

	if contains(p.Scope.Members.Named, name) {
		return true
	}

	selector := p.Scope.Members.Selector

	return selector != nil && !selector.Empty() && !scope.IsSystemNamespace(name, f.AmbitNamespace) &&
		ns.IsSelected(selector)
}
