package plan

import (
	"cmp"
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// diff compares what every namespace should hold with what it holds.
func (p *Plan) diff(f *facts.Facts) {
	for i := range p.Scopes {
		p.Scopes[i].diffMembers(f)
	}

	for namespace := range f.Projected {
		p.diffLeftovers(f, namespace)
	}

	// Sorted afterwards: what is left over is little, and what is there may be a lot.
	for i := range p.Scopes {
		sortChanges(p.Scopes[i].Revoke)
		sortChanges(p.Scopes[i].Prune)
	}

	sortChanges(p.Orphans)
}

func (p *ScopePlan) diffMembers(f *facts.Facts) {
	for _, namespace := range p.Members {
		held := f.Projected[namespace]

		for i := range p.Copies {
			c := &p.Copies[i]
			if c.Kind.IsClusterScoped() != (namespace == wholeCluster) {
				continue
			}

			key := c.key()

			if action, differs := compare(c, held, key); differs {
				p.Grant = append(p.Grant, Change{Action: action, Namespace: namespace, Key: key, Copy: c, Version: held[key].Version})
			}
		}
	}
}

func compare(c *Copy, held map[facts.ProjectedKey]facts.Projected, key facts.ProjectedKey) (Action, bool) {
	live, exists := held[key]

	switch {
	case !exists:
		return Create, true
	case live.Digest == c.digest:
		return "", false
	case c.Kind.IsBinding() && live.RoleRef != c.RoleRef:
		return Replace, true
	default:
		return Update, true
	}
}

// diffLeftovers finds what a namespace holds and should not: what a scope no longer projects, and what is left of a scope
// that is gone.
func (p *Plan) diffLeftovers(f *facts.Facts, namespace string) {
	for key, live := range f.Projected[namespace] {
		change := Change{Action: Delete, Namespace: namespace, Key: key, Version: live.Version}
		owner := p.ownerOf(key, live)

		switch {
		case owner == nil:
			if live.Made && scope.OwnerHome(live.Owner) == p.Home {
				p.Orphans = append(p.Orphans, change)
			}
		case owner.isMember(namespace):
			if !owner.wants(key) && !owner.isStillTold(namespace) {
				owner.Revoke = append(owner.Revoke, change)
			}
		case slices.Contains(owner.Scope.Listed, namespace):
		case !owner.isTerminatingMember(f, namespace):
			owner.Prune = append(owner.Prune, change)
		}
	}
}

// ownerOf finds the scope that made an object. A mark and the API server's record of who wrote it must agree, or the name
// must be the one that the scope gives: someone who copies one of our objects under another name, labels and all, keeps
// the copy, and someone who edits the labels of ours does not thereby keep it.
//
// The name goes before the label, and both before the annotation: scopes of one name in both groups have the same annotation.
func (p *Plan) ownerOf(key facts.ProjectedKey, live facts.Projected) *ScopePlan {
	for _, is := range []func(*ScopePlan) bool{
		func(s *ScopePlan) bool { return s.wants(key) || projected.IsNameOf(key.Name, s.hash, live.Source) },
		func(s *ScopePlan) bool { return live.Made && live.ScopeHash == s.hash },
		func(s *ScopePlan) bool { return live.Made && live.Owner == s.owner },
	} {
		for i := range p.Scopes {
			if is(&p.Scopes[i]) {
				return &p.Scopes[i]
			}
		}
	}

	return nil
}

// isMarked says whether an object bears a mark of the scope.
func (p *ScopePlan) isMarked(live facts.Projected) bool {
	return live.ScopeHash == p.hash || live.Owner == p.owner
}

// isStillTold says whether an operator is told of the whole cluster still, though its targets are namespaces by now. What it has
// there goes once it is told of these, as it does in a namespace that is no target any more.
func (p *ScopePlan) isStillTold(namespace string) bool {
	return namespace == "" && !p.Everywhere && slices.Contains(p.Scope.Listed, "")
}

func (p *ScopePlan) isMember(namespace string) bool {
	_, found := slices.BinarySearch(p.Members, namespace)

	return found
}

func (p *ScopePlan) wants(key facts.ProjectedKey) bool {
	_, wanted := p.wanted[key]

	return wanted
}

func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Key.Kind, b.Key.Kind),
			cmp.Compare(a.Key.Name, b.Key.Name))
	})
}
