package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// diff compares what every namespace should hold with what it holds.
func (p *planner) diff(f *facts.Facts) {
	p.names, p.clusterRoles, p.covers = f.Names, map[string]clusterRole{}, map[coverKey]cover{}
	p.allowances = map[string]*allowance{}
	p.byHash, p.byOwner, p.slots = map[string]int{}, map[string]int{}, make([]slots, len(p.Scopes))

	// Scopes of the same name in both API groups have the same annotation, but not the same label.
	for i := range p.Scopes {
		p.byHash[p.Scopes[i].ScopeHash], p.byOwner[p.Scopes[i].Owner] = i, i
		p.slots[i] = newSlots(p.Scopes[i].Copies)
	}

	namespaces := sets.KeySet(f.Projected)
	for i := range p.Scopes {
		namespaces.Insert(p.Scopes[i].Members...)
	}

	// What has no namespace comes first: bindings everywhere refer to its names.
	for _, namespace := range sets.List(namespaces) {
		p.diffNamespace(f, namespace)
	}

	names := make(map[string]string, len(p.clusterRoles))
	for is, role := range p.clusterRoles {
		names[is] = role.name
	}

	for i := range p.Scopes {
		p.Scopes[i].ClusterRoles = names

		for _, changes := range [][]Change{p.Scopes[i].Revoke, p.Scopes[i].Prune, p.Scopes[i].Retire, p.Scopes[i].Hold} {
			sortChanges(changes)
		}
	}

	sortChanges(p.Orphans)
}

// diffNamespace compares for all scopes: what bears the marks of one may have been made for another.
func (p *planner) diffNamespace(f *facts.Facts, namespace string) {
	for i := range p.Scopes {
		p.slots[i].empty()
	}

	for key, live := range f.Projected[namespace] {
		p.place(f, namespace, key, live)
	}

	members := make([]member, 0, len(p.Scopes))

	for i := range p.Scopes {
		if s := &p.Scopes[i]; s.isMember(namespace) {
			m := member{planner: p, s: s, filled: p.slots[i].filled, namespace: namespace, authorizations: f.Authorizations[namespace]}
			m.own()
			members = append(members, m)
		}
	}

	// A binding of one scope may refer to the ClusterRole of another.
	for i := range members {
		members[i].diff(func(c *Copy) bool { return !c.Kind.IsBinding() })
	}

	for i := range members {
		members[i].diff(func(c *Copy) bool { return c.Kind.IsBinding() })
		members[i].noteWithdrawn(f)
		members[i].retire(f)
	}
}

// filled is what there is in a slot of one namespace.
type filled struct {
	objects []object
	// name is that of the object which has the slot.
	name string
}

// object is a live object.
type object struct {
	key facts.ProjectedKey
	*facts.Projected
}

// newSlots are those of copies. It also sets in each copy which of the others it refers to.
func newSlots(copies []Copy) slots {
	out := slots{index: make(map[slot]int, len(copies)), filled: make([]filled, len(copies))}

	for i := range copies {
		out.index[slot{copies[i].Kind, copies[i].Slot}] = i
	}

	for i := range copies {
		copies[i].Role = out.index[slot{projected.Role, copies[i].RoleRef.Name}]
	}

	return out
}

// empty makes room for the objects of the next namespace.
func (s *slots) empty() {
	for i := range s.filled {
		s.filled[i].objects, s.filled[i].name = s.filled[i].objects[:0], ""
	}
}

// place finds where a live object belongs: into a slot of a member, or nowhere any more.
func (p *planner) place(f *facts.Facts, namespace string, key facts.ProjectedKey, live *facts.Projected) {
	at := p.ownerOf(namespace, live)
	if at < 0 {
		p.Orphans = append(p.Orphans, removal(namespace, key, live)...)

		return
	}

	s := &p.Scopes[at]
	index, wanted := p.slots[at].index[slot{key.Kind, live.Slot}]

	switch {
	case s.IsFinishing(namespace):
		p.finish(f, at, namespace, object{key, live})
	case !s.isMember(namespace):
		p.placeOutside(f, at, namespace, object{key, live})
	case wanted:
		there := &p.slots[at].filled[index]
		there.objects = append(there.objects, object{key, live})
	case !s.isStillReported(namespace):
		s.Revoke = append(s.Revoke, removal(namespace, key, live)...)
	}
}

// placeOutside decides about an object of a scope in a namespace that is no member. What is left to be deleted with its namespace
// is so only as far as the scope still asks for it: a pod that does not end keeps the namespace, and with it everything there.
func (p *planner) placeOutside(f *facts.Facts, at int, namespace string, live object) {
	s := &p.Scopes[at]
	index, wanted := p.slots[at].index[slot{live.key.Kind, live.Slot}]
	exact := wanted && live.Digest == s.Copies[index].Sum

	switch {
	case slices.Contains(s.Scope.Listed, namespace):
	case !s.staysWithNamespace(f, namespace, live.Projected, exact):
		s.Prune = append(s.Prune, removal(namespace, live.key, live.Projected)...)
	case !exact:
		s.Revoke = append(s.Revoke, p.revoked(f, at, namespace, live)...)
	}
}

// removal are the changes that take an object away. One that finalizers would keep is emptied first. One that is empty, and is
// deleted as soon as somebody else's finalizer is off, harms nobody.
func removal(namespace string, key facts.ProjectedKey, live *facts.Projected) []Change {
	change := Change{
		Action: Delete, Namespace: namespace, Key: key, RoleRef: live.RoleRef(), Version: live.Version, Named: live.Named,
		Loses: !live.Empty,
	}

	switch {
	case (live.Held || live.Terminating) && !live.Empty:
		change.Action = Empty
	case live.Terminating:
		return nil
	}

	return []Change{change}
}

// ownerOf finds the scope that made an object; -1 when that is gone. Its marks can be edited by whoever may write the object:
// one whose marks say nothing of use is taken away by another scope.
func (p *planner) ownerOf(namespace string, live *facts.Projected) int {
	if at, found := p.byHash[live.ScopeHash]; found {
		return at
	}

	if at, found := p.byOwner[live.Owner]; found {
		return at
	}

	if live.Owner != "" && scope.OwnerKey(live.Owner) == p.Key {
		return -1
	}

	return p.Guardian(namespace)
}

// Guardian is the index of the scope that takes away what nobody else does in a namespace; -1 when there is none.
func (p *Plan) Guardian(namespace string) int {
	at := slices.IndexFunc(p.Scopes, func(s ScopePlan) bool { return s.isMember(namespace) })

	return max(at, min(0, len(p.Scopes)-1))
}

// isMarked says whether an object bears a mark of the scope.
func (p *ScopePlan) isMarked(live *facts.Projected) bool {
	return live.ScopeHash == p.ScopeHash || live.Owner == p.Owner
}

// isStillReported says whether the annotation of an operator still names the whole cluster, though its targets are namespaces
// by now. What it has there goes once the annotation names these, as in a namespace that is no target any more.
func (p *ScopePlan) isStillReported(namespace string) bool {
	return namespace == "" && !p.Everywhere && slices.Contains(p.Scope.Listed, "")
}

func (p *ScopePlan) isMember(namespace string) bool { return contains(p.Members, namespace) }

func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Key.Kind, b.Key.Kind),
			cmp.Compare(a.Key.Name, b.Key.Name))
	})
}

// findForeignBindings names the bindings of others that refer to copies.
func (p *planner) findForeignBindings(f *facts.Facts) {
	for namespace, bindings := range f.Foreign {
		for _, b := range bindings {
			of := namespace
			if b.Role.Kind == projected.ClusterRole {
				of = wholeCluster
			}

			live, exists := f.Projected[of][b.Role]
			if !exists {
				continue
			}

			if at := p.ownerOf(of, live); at >= 0 {
				s := &p.Scopes[at]
				s.ForeignBindings = append(s.ForeignBindings, namespace+"/"+b.Name)
			}
		}
	}

	for i := range p.Scopes {
		slices.Sort(p.Scopes[i].ForeignBindings)
	}
}
