package simulation

import (
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// valid refuses Roles and ClusterRoles as the API server's validation does (k8s.io/kubernetes/pkg/apis/rbac/validation): their
// rules may be anybody's, because a ClusterServiceVersion asks for them, and its definition takes whatever is written.
func valid(r *request) error {
	if r.gvk.Group != rbacv1.GroupName || r.object == nil {
		return nil
	}

	would := handedOut(r.object)

	var all field.ErrorList

	// A binding stays one to the role to which it was made.
	if is := handedOut(r.live).ref; is != would.ref && is != (rbacv1.RoleRef{}) {
		all = append(all, field.Invalid(field.NewPath("roleRef"), would.ref, "cannot change roleRef"))
	}

	for i := range would.rules {
		all = append(all, invalid(&would.rules[i], r.key.Namespace != "", field.NewPath("rules").Index(i))...)
	}

	if len(all) == 0 {
		return nil
	}

	return apierrors.NewInvalid(r.gvk.GroupKind(), r.key.Name, all)
}

// invalid is what is wrong with a rule, in the API server's words.
func invalid(r *rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	var all field.ErrorList

	if len(r.Verbs) == 0 {
		all = append(all, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
	}

	if len(r.NonResourceURLs) > 0 {
		says := func(words string) {
			all = append(all, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, words))
		}

		if namespaced {
			says("namespaced rules cannot apply to non-resource URLs")
		}

		if len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0 {
			says("rules cannot apply to both regular resources and non-resource URLs")
		}

		return all
	}

	if len(r.APIGroups) == 0 {
		all = append(all, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}

	if len(r.Resources) == 0 {
		all = append(all, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}

	return all
}
