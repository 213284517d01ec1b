// Package projected says what a projected Role or RoleBinding looks like: its name, its labels, and when two of them
// are the same. The planner makes them, the reader recognises them, the applier writes them.
package projected

import (
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Kind is the kind of a projected object. The list is closed: a namespaced scope never makes anything else, and nothing
// cluster-scoped (CVE-2026-22872 in Capsule).
type Kind string

// The kinds that are projected.
const (
	Role        Kind = "Role"
	RoleBinding Kind = "RoleBinding"
)

// Object is a projected object without its namespace: it is the same in every member.
type Object struct {
	Kind Kind
	Name string
	// ScopeHash, Owner and Source are the label and the annotations that say where the object came from.
	ScopeHash, Owner, Source string

	// Rules are those of a Role.
	Rules []rbacv1.PolicyRule
	// RoleRef and Subjects are those of a RoleBinding.
	RoleRef  rbacv1.RoleRef
	Subjects []rbacv1.Subject
}

// maxStem leaves room for a dash and ten digits in the 63 characters that every kind of name allows.
const maxStem = 63 - 1 - digits

const digits = 10

// Name returns the name of the copy of a source object: the source's name, shortened, and a hash over scope and source.
// It is the same in every member and never that of another source.
func Name(scopeHash string, source Source) string {
	stem := source.Name
	if len(stem) > maxStem {
		stem = stem[:maxStem]
		for !utf8.ValidString(stem) {
			stem = stem[:len(stem)-1]
		}
	}

	return stem + "-" + scope.Digest(digits, scopeHash, source.Kind, source.Namespace, source.Name)
}

// IsNameOf says whether a name is the one that Name gives to the copy that the annotation ambit.dev/source describes.
// Labels can be edited by whoever may write the object; a name cannot.
func IsNameOf(name, scopeHash, source string) bool {
	s, ok := ParseSource(source)

	return ok && name == Name(scopeHash, s)
}

// AsRole returns the Role to write into a member.
func (o *Object) AsRole(namespace string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: o.meta(namespace), Rules: o.Rules}
}

// AsRoleBinding returns the RoleBinding to write into a member.
func (o *Object) AsRoleBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: o.meta(namespace), RoleRef: o.RoleRef, Subjects: o.Subjects}
}

// Labels returns the labels of the object.
func (o *Object) Labels() map[string]string {
	return map[string]string{scope.LabelManagedBy: scope.ManagedBy, scope.LabelScope: o.ScopeHash}
}

// Annotations returns the annotations of the object.
func (o *Object) Annotations() map[string]string {
	return map[string]string{scope.AnnotationOwner: o.Owner, scope.AnnotationSource: o.Source}
}

func (o *Object) meta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: o.Name, Labels: o.Labels(), Annotations: o.Annotations()}
}

// FromRole reads a live Role back. What Ambit does not write, such as labels that others put on it, is left out.
func FromRole(r *rbacv1.Role) Object {
	o := fromMeta(Role, &r.ObjectMeta)
	o.Rules = r.Rules

	return o
}

// FromRoleBinding reads a live RoleBinding back.
func FromRoleBinding(b *rbacv1.RoleBinding) Object {
	o := fromMeta(RoleBinding, &b.ObjectMeta)
	o.RoleRef, o.Subjects = b.RoleRef, b.Subjects

	return o
}

func fromMeta(kind Kind, m *metav1.ObjectMeta) Object {
	return Object{
		Kind: kind, Name: m.Name,
		ScopeHash: m.Labels[scope.LabelScope],
		Owner:     m.Annotations[scope.AnnotationOwner],
		Source:    m.Annotations[scope.AnnotationSource],
	}
}
