// Package grant is how a namespace's owner grants rules to the operators of another namespace: in which objects, and by which
// command line. Package authority says which rules. It is pure; the command line reads, shows and writes.
package grant

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// FieldManager writes grants. It differs from the manager's field manager, because the manager takes for its own what that
	// wrote.
	FieldManager = "ambit-authorize"
	// ManagedBy is the value of the label app.kubernetes.io/managed-by on every grant.
	ManagedBy = scope.ManagedByAuthorization
	// LabelTo names the namespace that a grant is for.
	LabelTo = scope.LabelAuthorizationTo
	// AnnotationScope names the scope that a grant is for, as --scope does; it is missing where the grant is for no scope.
	AnnotationScope = scope.AnnotationAuthorizationScope
	// AnnotationUse says in words who may use a grant.
	AnnotationUse = "ambit.dev/authorized-use"
	// DefaultAccount is the service account that gets a grant where neither the user nor the scope names one.
	DefaultAccount = scope.ManualDelegate

	// installsSuffix ends the name of a grant for installs, before the hash of a part. No namespace and no scope has such a name.
	installsSuffix = "+installs"

	// partDigits is the length of the hash in the name of a part.
	partDigits = 10
)

// Grant is an authorization: a Role and a RoleBinding in Namespace for the service account To/Account. Namespace may be To:
// that is what a scope needs in the operator namespace.
type Grant struct {
	Namespace, To, Account string
	// Scope is the scope in To that the grant is for; the zero Owner when it is for none.
	Scope scope.Owner
	Rules []rbacv1.PolicyRule
	// Part says that the rules are only what is missing besides other grants, which it must not replace.
	Part bool
	// Installs says that the grant is for the operators that are installed in To, and for no scope.
	Installs bool
}

// InOperatorNamespace says whether the grant is for the scope's own namespace.
func (g *Grant) InOperatorNamespace() bool { return g.Namespace == g.To }

// Name is the name of the Role and the RoleBinding. A namespace's name holds no dot, so the first one ends it, and a scope's
// name no colon, so no two scopes share a name. Names of RBAC objects have no limit that this could reach.
func (g *Grant) Name() string {
	name := scope.AuthorizationPrefix + g.To
	if g.Scope.Name != "" {
		name += "." + g.Scope.Name
	}

	if IsLegacy(g.Scope) {
		name += ":" + g.Scope.Group
	}

	if g.Installs {
		name += installsSuffix
	}

	if g.Part {
		name += "+" + scope.Digest(partDigits, g.Account, fmt.Sprint(g.Rules))
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

// GoesWith are the owner references by which a RoleBinding is deleted with its Role, and what was projected with the RoleBinding:
// whoever deletes either takes back the whole.
func GoesWith(role metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role", Name: role.GetName(), UID: role.GetUID(),
	}}
}

func (g *Grant) meta() metav1.ObjectMeta {
	annotations := map[string]string{AnnotationUse: g.use()}
	if g.Scope.Name != "" {
		annotations[AnnotationScope] = Short(g.Scope)
	}

	return metav1.ObjectMeta{
		Namespace: g.Namespace, Name: g.Name(),
		Labels:      map[string]string{scope.LabelManagedBy: ManagedBy, LabelTo: g.To},
		Annotations: annotations,
	}
}

func (g *Grant) use() string {
	who := fmt.Sprintf("service account %s/%s may ", g.To, g.Account)

	switch {
	case g.InOperatorNamespace():
		return who + "write the watch list of " + Title(g.Scope) + " here, and change and restart its readers"
	case g.Installs:
		return who + "write here what operators of namespace " + g.To + " are permitted"
	case g.Scope.Name == "":
		return who + "write roles and rolebindings in this namespace"
	default:
		return who + "write here what " + Title(g.Scope) + " projects"
	}
}

// IsGrant says whether an object in a namespace is a grant to another. Anything else of that name is not touched.
func IsGrant(obj metav1.Object, to string) bool {
	return obj.GetLabels()[scope.LabelManagedBy] == ManagedBy && obj.GetLabels()[LabelTo] == to
}

// IsForInstalls says whether a grant to a namespace is for the operators that are installed there, and for no scope.
func IsForInstalls(obj metav1.Object, to string) bool {
	rest, is := strings.CutPrefix(obj.GetName(), scope.AuthorizationPrefix+to+installsSuffix)

	return is && (rest == "" || strings.HasPrefix(rest, "+"))
}

// ScopeOf is the scope that a grant to a namespace is for; the zero Owner when it is for none.
func ScopeOf(obj metav1.Object, to string) scope.Owner {
	wanted, err := ParseWanted(obj.GetAnnotations()[AnnotationScope])
	if err != nil || len(validation.NameIsDNSSubdomain(wanted.Name, false)) > 0 {
		return scope.Owner{} // Somebody else wrote that. A grant for no scope is taken back with any.
	}

	return wanted.Owner(to)
}

// IsProjectedFor says whether an object was projected for a scope, by the label or the annotation; either may have been taken
// away by whoever may write in the namespace. The annotation does not say the group, so an object whose label means the scope of
// the same name in another group belongs to that one.
func IsProjectedFor(obj metav1.Object, owner scope.Owner) bool {
	label := obj.GetLabels()[scope.LabelScope]

	for _, group := range Groups() {
		twin := owner
		twin.Group = group

		if label == twin.Hash() {
			return twin == owner
		}
	}

	return obj.GetAnnotations()[scope.AnnotationOwner] == owner.String()
}
