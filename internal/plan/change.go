package plan

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Action is what to do with an object.
type Action string

// The actions. Empty takes all subjects or rules from an object that does not go when it is deleted, and what holds it. Hold puts
// a finalizer on an object and changes nothing else.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
	Empty  Action = "empty"
	Hold   Action = "hold"
)

// TakesAway says whether an action gives nothing to anybody, whatever is in the object.
func (a Action) TakesAway() bool { return a == Delete || a == Empty }

// Change is one write to one member.
type Change struct {
	Action    Action
	Namespace string
	Key       facts.ProjectedKey
	// Copy is what the object should be; nil for Delete, Empty and Hold.
	Copy *Copy
	// RoleRef is that of a binding in this namespace. Rules are those to write instead of the copy's, where fewer are to be left
	// in an object that is being replaced; nil otherwise.
	RoleRef rbacv1.RoleRef
	Rules   []rbacv1.PolicyRule
	// Owners are the owners of the object in this namespace; nil where its copy names the owner, or there is none.
	Owners []projected.OwnerRef
	// Version is the resource version of the object as the plan saw it; 0 for Create. Named says that nobody else's is called so.
	Version uint64
	Named   bool
	// Loses says that somebody holds less by the change: by an update that takes the role of a binding from them, or by a deletion.
	Loses bool
}

// Shrinks says whether the change takes rules from a role, or a role from somebody.
func (c *Change) Shrinks() bool {
	return c.Action == Update && (c.Loses || !c.Key.Kind.IsBinding() && (!c.Copy.growsInPlace() || c.Rules != nil))
}

// Fits says whether an update may be made to an object as it is by now: a role that was changed meanwhile already holds all that
// it is to have, so that nobody gains by the update, and a binding refers to the same role.
func (c *Change) Fits(live scope.Object) bool {
	is, _ := projected.From(live)

	if c.Copy == nil || live.GetDeletionTimestamp() != nil || is.RoleRef != c.RoleRef {
		return false
	}

	held := is.Rules
	if rights.Count(held) > rights.Max {
		held = nil // As if nothing were known of them.
	}

	return c.Key.Kind.IsBinding() || c.Copy.mayGrow(is.IsGuarded()) || rights.Covers(held, c.Object().Rules)
}

// Object is what the change makes of the object; nothing but its kind and its name where the change has no copy.
func (c *Change) Object() projected.Object {
	if c.Copy == nil {
		return projected.Object{Kind: c.Key.Kind, Name: c.Key.Name}
	}

	o := c.Copy.Object
	o.Name, o.RoleRef = c.Key.Name, c.RoleRef

	if c.Owners != nil {
		o.OwnerRefs = c.Owners
	}

	if c.Rules != nil {
		o.Rules = c.Rules
	}

	return o
}

// ShownName is what the object is called, for users. How the name of a new one ends, nobody knows before it is there.
func (c *Change) ShownName() string {
	if c.Action != Create || c.Copy.Fixed {
		return c.Key.Name
	}

	return projected.Prefix(c.Key.Kind, c.Copy.Slot) + "*"
}

// ShownRoleRef is what a binding refers to, for users. A role that comes with it has no name yet either.
func (c *Change) ShownRoleRef() rbacv1.RoleRef {
	ref := c.RoleRef
	if c.Copy != nil && c.Copy.OfCopy && ref.Name == c.Copy.RoleRef.Name {
		ref.Name = projected.Prefix(projected.Kind(ref.Kind), ref.Name) + "*"
	}

	return ref
}
