package explain

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// The kinds of Ambit's own resources for which it makes bindings.
const (
	kindNamespaceScope = "NamespaceScope"
	kindScopeTemplate  = "ScopeTemplate"
	kindScopeInstance  = "ScopeInstance"
)

// RefOf reads an annotation of the form <Kind>/<namespace>/<name>. Anybody who may write the object can write it, so it is no
// reference unless there can be such an object.
func RefOf(annotation string) (Ref, bool) {
	s, ok := projected.ParseSource(annotation)
	if !ok || s.Name == "" || len(content.IsPathSegmentName(s.Name)) > 0 {
		return Ref{}, false
	}

	switch s.Kind {
	case kindNamespaceScope, scope.KindCSV, scope.KindGroup, string(projected.Role), string(projected.RoleBinding):
		ok = len(validation.ValidateNamespaceName(s.Namespace, false)) == 0
	case kindScopeTemplate, kindScopeInstance, string(projected.ClusterRole), string(projected.ClusterRoleBinding):
		ok = s.Namespace == ""
	default:
		ok = false
	}

	return Ref{s.Kind, s.Namespace, s.Name}, ok
}

// bound is a binding, of one namespace or of the whole cluster.
type bound struct {
	metav1.Object

	ref      Ref
	roleRef  rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func inNamespace(b *rbacv1.RoleBinding) *bound {
	return &bound{b, Ref{string(projected.RoleBinding), b.Namespace, b.Name}, b.RoleRef, b.Subjects}
}

// boundBy are the bindings of a namespace, and then those of the whole cluster.
func boundBy(bindings []rbacv1.RoleBinding, everywhere []rbacv1.ClusterRoleBinding) []*bound {
	out := collect.Map(collect.Pointers(bindings), inNamespace)

	for i := range everywhere {
		b := &everywhere[i]
		out = append(out, &bound{b, Ref{string(projected.ClusterRoleBinding), "", b.Name}, b.RoleRef, b.Subjects})
	}

	return out
}

// ScopeOf is the scope for which Ambit made a RoleBinding, as far as the roles are known; nil where it made it for none.
func ScopeOf(b *rbacv1.RoleBinding, roles *Roles) *Ref {
	r := rightOf(inNamespace(b), "", roles)

	return r.Scope
}

// scope is the scope for which Ambit made a binding, by its marks; marked says that it has some. Anybody who may write bindings
// can write the marks, so they do not count on a binding that Ambit does not make: for what is in a namespace it binds service
// accounts of that namespace and nobody else, and for a NamespaceScope it does so in other namespaces only. For a ScopeInstance
// it binds ClusterRoles.
func (b *bound) scope() (of Ref, is, marked bool) {
	annotation, has := b.GetAnnotations()[scope.AnnotationOwner]
	if !has || b.GetLabels()[scope.LabelManagedBy] != scope.ManagedBy {
		return Ref{}, false, false
	}

	of, is = RefOf(annotation)

	switch of.Kind {
	case kindScopeInstance:
		is = is && b.roleRef.Kind == string(projected.ClusterRole)
	case scope.KindCSV:
		is = is && b.bindsAccountsOf(of.Namespace)
	case kindNamespaceScope:
		is = is && b.bindsAccountsOf(of.Namespace) && b.ref.Namespace != "" && b.ref.Namespace != of.Namespace
	default:
		is = false
	}

	return of, is, true
}

func (b *bound) bindsAccountsOf(namespace string) bool {
	return !slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
		return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != namespace
	})
}
