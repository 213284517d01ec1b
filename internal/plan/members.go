package plan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// resolveMembers unites the named and the selected namespaces. The home is a member without being projected to.
func (p *ScopePlan) resolveMembers(f *facts.Facts) {
	members := map[string]struct{}{}

	switch {
	case p.Scope.Members.Everywhere:
		p.Members = []string{wholeCluster}

		return
	case p.Scope.Members.Kept:
		p.Selection.Problem = p.Scope.Members.Problem
		p.Members = p.present(f)

		return
	}

	for _, name := range p.Scope.Members.Named {
		if name == p.Scope.Home {
			continue
		}

		ns, found := f.Namespaces[name]
		if !found || ns.Terminating || ns.Closed != "" {
			p.Absent = append(p.Absent, Absent{Namespace: name, Terminating: ns.Terminating, Closed: ns.Closed})

			continue
		}

		members[name] = struct{}{}
	}

	p.selectMembers(f, members)
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
		if scope.IsSystemNamespace(name, f.AmbitNamespace) || !selector.Matches(labels.Set(ns.Labels)) {
			continue
		}

		p.Selection.Matched++

		if name != p.Scope.Home && !ns.Terminating {
			members[name] = struct{}{}
		}
	}
}

// wholeCluster is the "namespace" of what has none.
const wholeCluster = ""

// present returns the namespaces in which something of the scope is and may stay.
func (p *ScopePlan) present(f *facts.Facts) []string {
	var out []string

	for name, held := range f.Projected {
		ns, exists := f.Namespaces[name]
		if name == wholeCluster || !exists || ns.Terminating {
			continue
		}

		for _, live := range held {
			if live.ScopeHash == p.hash && live.Made {
				out = append(out, name)

				break
			}
		}
	}

	slices.Sort(out)

	return out
}

// isTerminatingMember says whether a namespace is wanted by the scope and on its way out. What was projected there stays
// until the namespace is gone, so that operators can finish their work in it.
func (p *ScopePlan) isTerminatingMember(f *facts.Facts, name string) bool {
	ns, found := f.Namespaces[name]
	if !found || !ns.Terminating || p.Scope.Deleting() {
		return false
	}

	if _, named := slices.BinarySearch(p.Scope.Members.Named, name); named {
		return true
	}

	selector := p.Scope.Members.Selector

	return selector != nil && !selector.Empty() && !scope.IsSystemNamespace(name, f.AmbitNamespace) &&
		selector.Matches(labels.Set(ns.Labels))
}
