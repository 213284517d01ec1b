package projected

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// In returns the object to write into a namespace; it has none where the kind is cluster-scoped.
func (o *Object) In(namespace string) scope.Object {
	live := o.Kind.Empty(namespace, o.Name)
	live.SetLabels(o.Labels())
	live.SetAnnotations(o.Annotations())
	live.SetOwnerReferences(o.OwnerReferences(namespace))

	switch live := live.(type) {
	case *rbacv1.Role:
		live.Rules = o.Rules
	case *rbacv1.ClusterRole:
		live.Rules, live.AggregationRule = o.Rules, o.AggregationRule()
	case *rbacv1.RoleBinding:
		live.RoleRef, live.Subjects = o.RoleRef, o.Subjects
	case *rbacv1.ClusterRoleBinding:
		live.RoleRef, live.Subjects = o.RoleRef, o.Subjects
	}

	return live
}

// KindOf is the projected kind of an object, if it has one.
func KindOf(obj scope.Object) (Kind, bool) {
	switch obj.(type) {
	case *rbacv1.Role:
		return Role, true
	case *rbacv1.RoleBinding:
		return RoleBinding, true
	case *rbacv1.ClusterRole:
		return ClusterRole, true
	case *rbacv1.ClusterRoleBinding:
		return ClusterRoleBinding, true
	default:
		return "", false
	}
}

// Empty returns an object of the kind with nothing but its name.
func (k Kind) Empty(namespace, name string) scope.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}

	switch k {
	case Role:
		return &rbacv1.Role{ObjectMeta: meta}
	case ClusterRole:
		return &rbacv1.ClusterRole{ObjectMeta: meta}
	case ClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta}
	case RoleBinding:
	}

	return &rbacv1.RoleBinding{ObjectMeta: meta}
}

// EmptyList returns a list of the kind.
func (k Kind) EmptyList() scope.ObjectList {
	switch k {
	case Role:
		return &rbacv1.RoleList{}
	case ClusterRole:
		return &rbacv1.ClusterRoleList{}
	case ClusterRoleBinding:
		return &rbacv1.ClusterRoleBindingList{}
	case RoleBinding:
	}

	return &rbacv1.RoleBindingList{}
}

// OwnerReferences returns the owner references of the object in a namespace.
func (o *Object) OwnerReferences(namespace string) []metav1.OwnerReference {
	var out []metav1.OwnerReference

	for _, ref := range o.OwnerRefs {
		if ref.Namespace == "" || ref.Namespace == namespace {
			out = append(out, metav1.OwnerReference{
				APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: types.UID(ref.UID),
			})
		}
	}

	return out
}

// From reads a live object back, and says whether it is of a kind that is projected. What Ambit does not write, such as
// labels that others put on it, is left out.
func From(live scope.Object) (Object, bool) {
	o := Object{
		Name:      live.GetName(),
		Slot:      live.GetAnnotations()[scope.AnnotationCopy],
		ScopeHash: live.GetLabels()[scope.LabelScope],
		Owner:     live.GetAnnotations()[scope.AnnotationOwner],
		Source:    live.GetAnnotations()[scope.AnnotationSource],
	}

	switch live := live.(type) {
	case *rbacv1.Role:
		o.Kind, o.Rules = Role, live.Rules
	case *rbacv1.ClusterRole:
		o.Kind, o.Rules = ClusterRole, live.Rules
		o.Aggregates, o.Aggregated = aggregatesOf(live.AggregationRule)
	case *rbacv1.RoleBinding:
		o.Kind, o.RoleRef, o.Subjects = RoleBinding, live.RoleRef, live.Subjects
	case *rbacv1.ClusterRoleBinding:
		o.Kind, o.RoleRef, o.Subjects = ClusterRoleBinding, live.RoleRef, live.Subjects
	default:
		return Object{}, false
	}

	// Owner references of others do not matter where Ambit writes none; where it does, its own has to be the only one, since
	// the object goes only with the last of its owners.
	if scope.OwnerKey(o.Owner) == scope.TemplatesKey() {
		if refs := live.GetOwnerReferences(); len(refs) == 1 {
			o.OwnerRefs = []OwnerRef{{
				APIVersion: refs[0].APIVersion, Kind: refs[0].Kind, Name: refs[0].Name, UID: string(refs[0].UID),
			}}
		}
	}

	return o, true
}

// IsEmpty says whether nobody holds anything by the object.
func (o *Object) IsEmpty() bool {
	if o.Kind.IsBinding() {
		return len(o.Subjects) == 0
	}

	return len(o.Rules) == 0 && len(o.Aggregates) == 0 && !o.Aggregated
}

// IsGuarded says whether the object holds the rule that keeps everybody from binding it. What others put together, in an
// aggregated ClusterRole, does not count: it may come and go.
func (o *Object) IsGuarded() bool {
	return o.Kind == ClusterRole && !o.Aggregated && len(o.Aggregates) == 0 &&
		rights.Covers(o.Rules, []rbacv1.PolicyRule{scope.GuardRule()})
}
