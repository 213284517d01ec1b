package plan

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// member is what one scope has in one of its member namespaces.
//
// A Role never gains rules in place: whoever holds its rules today may have bound it, and would hold those of tomorrow. It is
// replaced by one of another name, with a binding of its own, and goes with the old binding once the API server's authorizer
// knows of both. What it holds in excess is taken from it at once, and so is a rule that is only taken away.
//
// The ClusterRole of a template does gain rules in place, because it holds a rule that keeps everybody from binding it. Whoever
// may write it can take that rule from it, and all others, and bind what is left: then it is replaced, too.
type member struct {
	*planner

	s         *ScopePlan
	filled    []filled
	namespace string
	// authorizations are those in the namespace, whoever needs them, and owning those of them that may own copies.
	authorizations, owning []facts.Authorization
	// allowances are what those of owning allow, where there are several, and uids what they are all known by.
	allowances []*allowance
	uids       string
	// replaced are the objects in whose place others come, or came.
	replaced []object
}

// fit says how well a live object does for a copy.
type fit int

const (
	unfit fit = iota
	// correctable objects become exact by one write that gives nothing to anybody but those whom the copy is for.
	correctable
	exact
)

// diff compares the selected copies with what is there.
func (m *member) diff(selected func(*Copy) bool) {
	for i := range m.s.Copies {
		c := &m.s.Copies[i]
		if selected(c) && c.Kind.IsClusterScoped() == (m.namespace == wholeCluster) {
			m.diffCopy(c, &m.filled[i])
		}
	}
}

func (m *member) diffCopy(c *Copy, there *filled) {
	ref, known := m.roleRef(c)
	if !known {
		return // Its role is another scope's to make, which does not make it.
	}

	slices.SortFunc(there.objects, func(a, b object) int { return cmp.Compare(a.key.Name, b.key.Name) })

	best, how := -1, unfit

	for i := range there.objects {
		if is := m.fit(c, &there.objects[i], ref); is > how {
			best, how = i, is
		}
	}

	if how == unfit {
		there.name = m.newName(c)
		m.grant(Change{Action: Create, Key: facts.ProjectedKey{Kind: c.Kind, Name: there.name}, Copy: c, RoleRef: ref})
	} else {
		there.name = there.objects[best].key.Name
	}

	if how == correctable {
		m.correct(c, &there.objects[best])
	}

	if c.Kind == projected.ClusterRole {
		m.clusterRoles[c.Slot] = clusterRole{there.name, slices.Clone(there.objects)}
	}

	for i := range there.objects {
		if i != best {
			m.replace(c, there.objects[i])
		}
	}
}

// roleRef says what a binding refers to here, and whether that is known.
func (m *member) roleRef(c *Copy) (ref rbacv1.RoleRef, known bool) {
	ref = c.RoleRef
	if !c.OfCopy {
		return ref, true
	}

	if ref.Kind == string(projected.Role) {
		ref.Name = m.filled[c.Role].name

		return ref, true
	}

	role, known := m.clusterRoles[ref.Name]
	ref.Name = role.name

	return ref, known
}

func (m *member) newName(c *Copy) string {
	if c.Fixed || m.names == nil {
		return c.Slot
	}

	return m.names.New(c.Kind, m.namespace, m.Key, c.Slot)
}

func (m *member) fit(c *Copy, live *object, ref rbacv1.RoleRef) fit {
	isCalledRight := m.names == nil || live.Named
	if c.Fixed {
		isCalledRight = live.key.Name == c.Slot
	}

	switch {
	case live.Terminating, !isCalledRight, live.RoleRef() != ref, m.goesTooSoon(live):
		return unfit
	case live.Digest == c.Sum && m.goesWith(c, live):
		return exact
	case c.Kind.IsBinding(), c.mayGrow(live.Guarded), !m.coverOf(live.Rules, c).grows:
		return correctable
	default:
		return unfit
	}
}

// own finds the authorizations that may own copies here.
func (m *member) own() {
	if !m.s.MayBeOwned(m.namespace) {
		return
	}

	m.owning = m.s.authorizationsOf(m.authorizations)

	if m.s.ownsAlone(m.owning) {
		return
	}

	for i := range m.owning {
		m.allowances = append(m.allowances, m.allowance(m.owning[i].Rules))
	}
}

// allowance is what rules allow, worked out once for all namespaces that grant the same.
func (p *planner) allowance(rules ...string) *allowance {
	key := strings.Join(rules, "\n")

	a, known := p.allowances[key]
	if !known {
		a = newAllowance(rules...)
		p.allowances[key] = a
	}

	return a
}

// owners are the owners of a copy here; none where nothing in the namespace owns it.
func (m *member) owners(c *Copy) []facts.Authorization {
	for i := range m.allowances {
		if !m.allowances[i].allows(c, m.s.Copies) {
			return m.s.ownersAmong(m.owning, func(of ...facts.Authorization) bool {
				return m.allowance(rulesOf(of)...).allows(c, m.s.Copies)
			})
		}
	}

	return m.owning
}

func (m *member) ownersOf(c *Copy) []projected.OwnerRef { return ownerRefs(m.namespace, m.owners(c)) }

// goesWith says whether an object goes with what it should, and with nothing else.
func (m *member) goesWith(c *Copy, live *object) bool {
	owners := m.owners(c)

	return len(owners) == 0 || live.Owners == m.uidsOf(owners)
}

// uidsOf are the UIDs of owners of a copy here, as a live object has them. They are compared for each object in each namespace.
func (m *member) uidsOf(owners []facts.Authorization) string {
	if len(owners) == 1 {
		return owners[0].UID
	}

	if len(owners) == len(m.owning) && m.uids != "" {
		return m.uids
	}

	uids := collect.Map(owners, func(a facts.Authorization) string { return a.UID })
	all := facts.OwnersOf(uids)

	if len(owners) == len(m.owning) {
		m.uids = all
	}

	return all
}

// goesTooSoon says whether an object goes with an authorization that the scope needs no longer, such as one that had a delegate.
func (m *member) goesTooSoon(live *object) bool {
	return len(m.owning) == 0 && isOwned(live.Projected, m.authorizations)
}

// correct changes an object that has to differ. What takes rules away comes first.
func (m *member) correct(c *Copy, live *object) {
	change := m.update(c, live)

	if c.Kind.IsBinding() || c.growsInPlace() || !m.coverOf(live.Rules, c).exceeds {
		m.grant(change)
	} else {
		m.s.Revoke = append(m.s.Revoke, change)
	}
}

// update is the change of an object into the copy.
func (m *member) update(c *Copy, live *object) Change {
	return Change{
		Action: Update, Namespace: m.namespace, Key: live.key, Copy: c, RoleRef: live.RoleRef(), Owners: m.ownersOf(c),
		Version: live.Version, Named: live.Named, Loses: c.Kind.IsBinding() && m.loses(live.Projected, c),
	}
}

func (m *member) grant(change Change) {
	change.Namespace, change.Owners = m.namespace, m.ownersOf(change.Copy)
	m.s.Grant = append(m.s.Grant, change)
}

// replace takes from an object in whose place another comes what it should not give, and leaves the rest until that is known. One
// that somebody deleted, and that a finalizer keeps, gives nothing any more: whoever deletes each that comes could otherwise keep
// all of them.
func (m *member) replace(c *Copy, live object) {
	change := m.update(c, &live)

	switch {
	case live.Terminating, c.Kind.IsBinding() && !m.isOurs(c, live.RoleRef()):
		m.s.Revoke = append(m.s.Revoke, removal(m.namespace, live.key, live.Projected)...)

		return
	case c.Kind.IsBinding():
		if live.Digest != c.Sum {
			m.s.Revoke = append(m.s.Revoke, change)
		}
	default:
		if with := m.coverOf(live.Rules, c); with.exceeds && !live.Empty {
			change.Rules = with.common
			m.s.Revoke = append(m.s.Revoke, change)
		}
	}

	m.replaced = append(m.replaced, live)
}

// isOurs says whether a binding in a slot refers to the role that it should, by whatever name.
func (m *member) isOurs(c *Copy, ref rbacv1.RoleRef) bool {
	if !c.OfCopy {
		return ref == c.RoleRef
	}

	if ref.Kind != c.RoleRef.Kind {
		return false
	}

	there := m.filled[c.Role].objects
	if ref.Kind == string(projected.ClusterRole) {
		there = m.clusterRoles[c.RoleRef.Name].former
	}

	return slices.ContainsFunc(there, func(o object) bool { return o.key.Name == ref.Name })
}

// retire removes what was replaced, once what replaces it is there and known to the API server's authorizer.
func (m *member) retire(f *facts.Facts) {
	var removals []Change

	for _, live := range m.replaced {
		// An account that installs need not be allowed to delete. What it emptied goes with its owner.
		if !live.Empty || !m.s.Scope.Installed() || m.s.Scope.Delegate == "" {
			removals = append(removals, removal(m.namespace, live.key, live.Projected)...)
		}
	}

	if m.s.Replaced = append(m.s.Replaced, removals...); len(removals) == 0 || m.isPending() {
		return
	}

	if !m.isSettled(f, m.namespace) {
		m.s.Waits = true

		return
	}

	m.s.Retire = append(m.s.Retire, removals...)
}

// isPending says whether something of the scope is yet to be written here.
func (m *member) isPending() bool {
	n := len(m.s.Grant)

	return n > 0 && m.s.Grant[n-1].Namespace == m.namespace
}
