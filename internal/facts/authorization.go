package facts

import (
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
}

// IsFor says whether an authorization serves a scope.
func (c *Authorization) IsFor(owner scope.Owner) bool {
	return c.ScopeName == "" || c.ScopeName == owner.Name && c.ScopeGroup == owner.Group
}

// Slot tells a copy from the others of a namespace.
type Slot struct {
	ScopeHash string
	Kind      projected.Kind
	Slot      string
}
