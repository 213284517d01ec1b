package plan

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// noteWithdrawn notes whether something that was projected into a member is known to be gone: no object is left by which an
// account holds anything, or something was seen to go. What is merely not there yet, such as a change that is refused, does not
// count. It is called while the slots hold what is in the namespace.
func (m *member) noteWithdrawn(f *facts.Facts) {
	if len(f.Legacy[m.namespace]) > 0 {
		return // What another operator projected is in its place.
	}

	wanted, works, lost := 0, 0, false

	for i := range m.s.Copies {
		c := &m.s.Copies[i]
		if c.Kind != projected.RoleBinding {
			continue
		}

		wanted++

		if m.works(c, &m.filled[i]) {
			works++
		} else if m.isLost(f, c, &m.filled[i]) {
			lost = true
		}
	}

	if wanted > 0 && works == 0 {
		m.s.Bare = append(m.s.Bare, m.namespace)
	}

	if wanted > 0 && works == 0 || lost {
		m.s.Withdrawn = append(m.s.Withdrawn, m.namespace)
	}
}

// works says whether some live object in a binding's slot gives what its role says.
func (m *member) works(c *Copy, there *filled) bool {
	return slices.ContainsFunc(there.objects, func(o object) bool {
		if o.Empty {
			return false
		}

		if !c.OfCopy || o.RoleKind != string(projected.Role) {
			return true
		}

		role := &m.s.Copies[c.Role]

		return slices.ContainsFunc(m.filled[c.Role].objects, func(r object) bool {
			return r.key.Name == o.RoleName && (!r.Empty || len(role.Rules) == 0)
		})
	})
}

// isLost says whether a binding that gives nothing gave something before: it, or its role, was seen to go, or is there and empty.
func (m *member) isLost(f *facts.Facts, c *Copy, there *filled) bool {
	lost := f.Lost[m.namespace]
	_, binding := lost[facts.Slot{ScopeHash: m.s.ScopeHash, Kind: c.Kind, Slot: c.Slot}]
	role := false

	if c.OfCopy {
		_, role = lost[facts.Slot{ScopeHash: m.s.ScopeHash, Kind: projected.Role, Slot: m.s.Copies[c.Role].Slot}]
	}

	return binding || role || len(there.objects) > 0
}

// IsBare says whether nobody holds anything by what is in a member, although somebody should.
func (p *ScopePlan) IsBare(namespace string) bool { return contains(p.Bare, namespace) }

// IsReported says whether the status last named a member as one that the list names because of this scope.
func (p *ScopePlan) IsReported(namespace string) bool { return contains(p.Scope.Reported, namespace) }

func contains(sorted []string, name string) bool {
	_, found := slices.BinarySearch(sorted, name)

	return found
}
