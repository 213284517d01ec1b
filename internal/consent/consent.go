// Package consent says what a namespace's owner grants to the operators of another namespace: the least by which a scope
// there can be projected here. It is pure; the command line reads, shows and writes.
package consent

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// FieldManager writes grants. It is not the manager's own, which takes what bears its name for its own.
	FieldManager = "ambit-authorize"
	// ManagedBy is the value of the label app.kubernetes.io/managed-by on every grant.
	ManagedBy = FieldManager
	// LabelTo names the namespace that a grant is for.
	LabelTo = "ambit.dev/authorized-for"
	// AnnotationScope names the scope that a grant is for; it is missing where no scope was asked.
	AnnotationScope = "ambit.dev/authorized-scope"
	// AnnotationUse says in words who may use a grant.
	AnnotationUse = "ambit.dev/authorized-use"
	// DefaultAccount is the service account that is granted to where neither the caller nor the scope names one.
	DefaultAccount = "ambit"
)

// Grant is a consent: a Role and a RoleBinding in Namespace for the service account To/Account.
type Grant struct {
	Namespace, To, Account string
	// Scope is the name of the scope in To that the grant is for; empty when it is for none.
	Scope string
	Rules []rbacv1.PolicyRule
}

// Name is the name of the Role and the RoleBinding. A namespace's name holds no dot, so the first one ends it, and no two
// scopes share a name. Names of RBAC objects have no limit that this could reach.
func (g *Grant) Name() string {
	name := "ambit-authorized-from-" + g.To
	if g.Scope != "" {
		name += "." + g.Scope
	}

	return name
}

// Role returns the Role to write.
func (g *Grant) Role() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: g.meta(), Rules: g.Rules,
	}
}

// RoleBinding returns the RoleBinding to write. Its subject always has a namespace.
func (g *Grant) RoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: g.meta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: g.Name()},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: g.To, Name: g.Account}},
	}
}

func (g *Grant) meta() metav1.ObjectMeta {
	annotations := map[string]string{AnnotationUse: g.use()}
	if g.Scope != "" {
		annotations[AnnotationScope] = g.Scope
	}

	return metav1.ObjectMeta{
		Namespace: g.Namespace, Name: g.Name(),
		Labels:      map[string]string{scope.LabelManagedBy: ManagedBy, LabelTo: g.To},
		Annotations: annotations,
	}
}

func (g *Grant) use() string {
	if g.Scope == "" {
		return fmt.Sprintf("service account %s/%s may write roles and rolebindings in this namespace", g.To, g.Account)
	}

	return fmt.Sprintf("service account %s/%s may write here what NamespaceScope %s/%s projects", g.To, g.Account, g.To, g.Scope)
}

// IsGrant says whether an object in a namespace is a grant to another. Anything else of that name is not touched.
func IsGrant(obj metav1.Object, to string) bool {
	return obj.GetLabels()[scope.LabelManagedBy] == ManagedBy && obj.GetLabels()[LabelTo] == to
}

// IsProjectedFor says whether an object was projected for a scope, by the label or the annotation; either may have been
// taken away by whoever may write in the namespace.
func IsProjectedFor(obj metav1.Object, owner scope.Owner) bool {
	return obj.GetLabels()[scope.LabelScope] == owner.Hash() || obj.GetAnnotations()[scope.AnnotationOwner] == owner.String()
}
