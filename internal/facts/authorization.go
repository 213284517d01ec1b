package facts

import (
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Authorization is a RoleBinding by which the owner of a namespace lets an account write there.
type Authorization struct {
	Name, UID string
	// Account is the service account, of the operator namespace.
	Account string
	// ScopeGroup and ScopeName are the scope that it is for; empty where it is for none in particular.
	ScopeGroup, ScopeName string
	// Rules are those that it grants, as JSON; empty where they are not known.
	Rules string
}

// IsFor says whether an authorization serves a scope.
func (c *Authorization) IsFor(owner scope.Owner) bool {
	return c.ScopeName == "" || c.ScopeName == owner.Name && c.ScopeGroup == owner.Group
}

// maxOwners is how long the UIDs of the owners of an object may be together. Ambit gives it far fewer owners.
const maxOwners = 1 << 10

// manyOwners stands for more owners than are kept. It is no UID.
const manyOwners = "many"

// OwnersOf are the UIDs of owners, sorted, in one string.
func OwnersOf(uids []string) string {
	slices.Sort(uids)

	if owners := strings.Join(uids, ","); len(owners) <= maxOwners {
		return owners
	}

	return manyOwners
}

// OwnerUIDs are the UIDs of the owners of a projected object.
func (p *Projected) OwnerUIDs() []string {
	if p.Owners == "" {
		return nil
	}

	return strings.Split(p.Owners, ",")
}

// Slot tells a copy from the others of a namespace.
type Slot struct {
	ScopeHash string
	Kind      projected.Kind
	Slot      string
}
