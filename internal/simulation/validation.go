package simulation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// valid refuses what the API server's validation does (k8s.io/kubernetes/pkg/apis) where others have a hand in what Ambit writes.
func valid(r *request) error {
	var all field.ErrorList

	switch {
	case r.object == nil:
		return nil
	case r.gvk.Group == rbacv1.GroupName:
		all = invalidRBAC(r)
	case r.gvk.Group == corev1.GroupName && r.gvk.Kind == "ConfigMap":
		all = invalidConfigMap(r.object)
	}

	if len(all) == 0 {
		return nil
	}

	return apierrors.NewInvalid(r.gvk.GroupKind(), r.key.Name, all)
}

// invalidConfigMap is what is wrong with a ConfigMap, of which Ambit writes one key and others the rest.
func invalidConfigMap(obj client.Object) field.ErrorList {
	cm, is := obj.(*corev1.ConfigMap)
	if u, untyped := obj.(*unstructured.Unstructured); untyped {
		cm = &corev1.ConfigMap{}
		is = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cm) == nil
	}

	if !is {
		return nil
	}

	var all field.ErrorList

	size := 0

	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		if _, twice := cm.BinaryData[key]; twice {
			all = append(all, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}

		size += len(cm.Data[key])
	}

	for _, value := range cm.BinaryData {
		size += len(value)
	}

	if size > corev1.MaxSecretSize {
		all = append(all, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}

	return all
}

// invalidRBAC is what is wrong with a Role or a ClusterRole, the rules of which may be anybody's: a ClusterServiceVersion asks
// for them, and its definition takes whatever is written.
func invalidRBAC(r *request) field.ErrorList {
	var all field.ErrorList

	would := handedOut(r.object)

	// A binding stays one to the role to which it was made.
	if is := handedOut(r.live).ref; is != would.ref && is != (rbacv1.RoleRef{}) {
		all = append(all, field.Invalid(field.NewPath("roleRef"), would.ref, "cannot change roleRef"))
	}

	for i := range would.rules {
		all = append(all, invalid(&would.rules[i], r.key.Namespace != "", field.NewPath("rules").Index(i))...)
	}

	return all
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
