package narrow

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// keepInOwnNamespace keeps RoleBindings out of the members that give the accounts something in their own namespace only, such
// as leader election: a scope copies every RoleBinding of its accounts. Those that the cluster alone has can only be named.
func (r *run) keepInOwnNamespace(namespace string, all []*served) {
	bindings, known := r.roleBindings()
	if !known {
		r.report.notef("RoleBindings of the cluster could not be read: the scope copies into members what those of namespace %s give "+
			"the accounts, also what is meant for that namespace alone", namespace)
	}

	for _, b := range bindings {
		if b.Namespace != namespace || b.Annotations[scope.AnnotationProject] == scope.ProjectDisabled ||
			b.Labels[scope.LabelManagedBy] == scope.ManagedByAuthorization || !b.isCopiedFor(all) {
			continue
		}

		switch {
		case b.Annotations[AnnotationFrom] != "":
			if !b.live {
				r.report.copied = append(r.report.copied, b.doc.String())
			}

			continue
		case b.live && b.Annotations[scope.AnnotationProject] != "":
			continue // Somebody decided so, in this cluster.
		}

		if b.live {
			r.report.warnf("%s of the cluster gives an account something in its own namespace, and the scope copies that into the "+
				"members. If it is meant for that namespace alone: kubectl annotate rolebinding -n %s -- %s %s=%s", b.doc,
				printable.Word(b.Namespace), printable.Word(b.Name), scope.AnnotationProject, scope.ProjectDisabled)

			continue
		}

		set(within(b.doc.body, "metadata", "annotations"), scope.AnnotationProject, scalar(scope.ProjectDisabled))
		b.doc.changed = true
		r.report.kept = append(r.report.kept, b.doc.String())
	}
}

// isCopiedFor says whether a scope of the accounts copies a binding beside it. It does not if everybody holds what that gives.
func (b *binding) isCopiedFor(all []*served) bool {
	return slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
		return s.Name != scope.GroupAuthenticated && b.means(&s, all)
	})
}

// names says whether it is for one of the accounts.
func (b *binding) names(all []*served) bool {
	return slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return b.means(&s, all) })
}

func (b *binding) means(s *rbacv1.Subject, all []*served) bool {
	return slices.ContainsFunc(all, func(a *served) bool { return a.IsMeant(s, b.Namespace) })
}
