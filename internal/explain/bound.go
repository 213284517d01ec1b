package explain

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Bound returns the subjects of bindings whose names contain a text, in whatever case, each with the binding that names it. A
// service account is called NAMESPACE/NAME. What the roles allow is left out: a name may be bound in every namespace.
func Bound(text string, bindings []rbacv1.RoleBinding, everywhere []rbacv1.ClusterRoleBinding) []Entry {
	wanted := strings.ToLower(text)

	var out []Entry

	for _, b := range boundBy(bindings, everywhere) {
		right := givenBy(b, "")
		right.Rules = []rbacv1.PolicyRule{}

		for _, e := range entries(&right, b.subjects, nil) {
			if strings.Contains(strings.ToLower(e.title()), wanted) {
				out = append(out, e)
			}
		}
	}

	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.title(), b.title()),
			cmp.Compare(a.Right.Binding.Namespace, b.Right.Binding.Namespace), cmp.Compare(a.Right.Binding.Name, b.Right.Binding.Name))
	})

	return out
}

func (e *Entry) title() string {
	if e.Namespace == "" {
		return e.Name
	}

	return e.Namespace + "/" + e.Name
}
