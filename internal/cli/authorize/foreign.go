package authorize

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// boundTo names the RoleBindings by which others are bound to the Roles of grants. Whoever made one held what the Role allowed
// then, and the names of grants are known: they would gain what the Role gains now.
func (w *session) boundTo(ctx context.Context, grants []grant.Grant) ([]string, error) {
	var notes []string

	for i := range grants {
		g := &grants[i]

		var list rbacv1.RoleBindingList

		err := w.List(ctx, &list, client.InNamespace(g.Namespace))
		if apierrors.IsForbidden(err) {
			notes = append(notes, fmt.Sprintf("you may not list the rolebindings of namespace %s, so it is unknown whether somebody "+
				"else is bound to Role %s there, and gets the same", g.Namespace, g.Name()))

			continue
		}

		if err != nil {
			return nil, describeRefusal(err, "listing the rolebindings of namespace %s", g.Namespace)
		}

		all := 0

		for j := range list.Items {
			b := &list.Items[j]
			if b.RoleRef.Kind != roleKind || b.RoleRef.Name != g.Name() || b.Name == g.Name() {
				continue
			}

			if all++; all <= maxKept {
				notes = append(notes, fmt.Sprintf("RoleBinding %s in namespace %s gives the same to %s; if it should not: %s",
					printable.Name(b.Name), g.Namespace, holders(b.Subjects), printable.Deletion("rolebinding", g.Namespace, b.Name)))
			}
		}

		if all > maxKept {
			notes = append(notes, fmt.Sprintf("%d more RoleBindings in namespace %s give the same to others", all-maxKept, g.Namespace))
		}
	}

	return notes, nil
}

// holders names the subjects of a binding for users.
func holders(subjects []rbacv1.Subject) string {
	names := make([]string, 0, len(subjects))

	for i := range subjects {
		name := printable.Name(subjects[i].Name)
		if subjects[i].Namespace != "" {
			name = printable.Name(subjects[i].Namespace) + "/" + name
		}

		names = append(names, subjects[i].Kind+" "+name)
	}

	const shown = 3

	return printable.Some(names, shown)
}
