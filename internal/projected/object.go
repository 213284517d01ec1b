// Package projected says what a projected Role or RoleBinding looks like: its name, its labels, and when two of them
// are the same. The planner makes them, the reader recognises them, the applier writes them.
package projected

import (
	"strings"
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Kind is the kind of a projected object. The list is closed: a scope never makes anything else, and a namespaced one
// nothing cluster-scoped (CVE-2026-22872 in Capsule).
type Kind string

// The kinds that are projected. The last two are for scopes whose resource is cluster-scoped itself.
const (
	Role               Kind = "Role"
	RoleBinding        Kind = "RoleBinding"
	ClusterRole        Kind = "ClusterRole"
	ClusterRoleBinding Kind = "ClusterRoleBinding"
)

// RoleKinds grant nothing by themselves.
func RoleKinds() []Kind { return []Kind{ClusterRole, Role} }

// BindingKinds grant what is in the kinds that they refer to.
func BindingKinds() []Kind { return []Kind{ClusterRoleBinding, RoleBinding} }

// IsBinding says whether a kind is one of BindingKinds.
func (k Kind) IsBinding() bool { return k == RoleBinding || k == ClusterRoleBinding }

// Resource is the resource of a kind, as rules name it.
func (k Kind) Resource() string { return strings.ToLower(string(k)) + "s" }

// IsClusterScoped says whether objects of a kind have no namespace.
func (k Kind) IsClusterScoped() bool { return k == ClusterRole || k == ClusterRoleBinding }

// Object is a projected object without its namespace: it is the same in every member, but for its name, and for that of the
// Role that it refers to.
type Object struct {
	Kind Kind
	// Slot tells the copies of a scope apart, and is the same in every member; see Slot. Name is that of one object in one of them.
	Slot, Name string
	// ScopeHash, Owner and Source are the label and the annotations that say where the object came from.
	ScopeHash, Owner, Source string
	// OwnerRefs are the resources with the last of which garbage collection deletes the object.
	OwnerRefs []OwnerRef

	// Rules are those of a Role or ClusterRole.
	Rules []rbacv1.PolicyRule
	// Aggregates are the labels, each with the value "true", of the ClusterRoles from which a ClusterRole takes its rules; it
	// has none of its own then.
	Aggregates []string
	// Aggregated says that somebody made a live ClusterRole take its rules from others in a way that Ambit never does.
	Aggregated bool
	// RoleRef and Subjects are those of a binding.
	RoleRef  rbacv1.RoleRef
	Subjects []rbacv1.Subject
}

// maxStem leaves room for a dash and ten digits in the 63 characters that every kind of name allows.
const maxStem = 63 - 1 - digits

const digits = 10

// Slot returns what tells the copy of a source object from the other copies of a scope: the source's name, shortened, and a
// hash over scope and source. It is the same in every member and never that of another source. It was the name of the copies
// before these had names that nobody knows beforehand.
func Slot(scopeHash string, source Source) string {
	stem := source.Name
	if len(stem) > maxStem {
		stem = stem[:maxStem]
		for !utf8.ValidString(stem) {
			stem = stem[:len(stem)-1]
		}
	}

	return stem + "-" + scope.Digest(digits, scopeHash, source.Kind, source.Namespace, source.Name)
}

// OwnerRef is what Ambit decides of an owner reference. A resource that has a namespace owns only what is in it.
type OwnerRef struct{ APIVersion, Kind, Name, UID, Namespace string }

// Labels returns the labels of the object.
func (o *Object) Labels() map[string]string {
	return map[string]string{scope.LabelManagedBy: scope.ManagedBy, scope.LabelScope: o.ScopeHash}
}

// Annotations returns the annotations of the object.
func (o *Object) Annotations() map[string]string {
	return map[string]string{
		scope.AnnotationOwner: o.Owner, scope.AnnotationSource: o.Source, scope.AnnotationCopy: o.Slot,
	}
}
