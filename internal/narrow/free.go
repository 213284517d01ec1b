package narrow

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// freeName is a name that nothing else has, in the input or in the cluster, and for which no binding waits: whoever is bound to
// something that is not there yet would gain what is made under its name. What was made before from the same object keeps its
// name. subjects are those to whom it is bound anyway.
func (r *run) freeName(kind, namespace, name, from, suffix string, subjects []rbacv1.Subject) string {
	for r.isTaken(kind, namespace, name, from, subjects) {
		name += suffix
	}

	return name
}

func (r *run) isTaken(kind, namespace, name, from string, subjects []rbacv1.Subject) bool {
	if d := r.identities[identity(kind, namespace, name)]; d != nil {
		// Of what the input has in the whole cluster under such a name, whoever adds it tells.
		return namespace != "" && cameFrom(d) != from
	}

	switch was, is := r.cameFromThere(kind, namespace, name); {
	case is:
		return was != from
	case kind == kindRole || kind == kindClusterRole:
		return r.isAwaited(kind, namespace, name, subjects)
	default:
		return false
	}
}

// cameFromThere is what an object of the cluster was narrowed from, empty for nothing; false says that there is no such object.
func (r *run) cameFromThere(kind, namespace, name string) (from string, is bool) {
	switch kind {
	case kindRole:
		if r.RoleIn != nil {
			if of := r.RoleIn(namespace, name); of != nil {
				return of.Annotations[AnnotationFrom], true
			}
		}
	case kindClusterRole:
		if r.Roles != nil {
			if of := r.Roles(name); of != nil {
				return of.Annotations[AnnotationFrom], true
			}
		}
	default:
		all, _ := r.roleBindings()
		if namespace == "" {
			all, _ = r.everywhereThere()
		}

		for _, b := range all {
			if b.live && b.Namespace == namespace && b.Name == name {
				return b.Annotations[AnnotationFrom], true
			}
		}
	}

	return "", false
}

// isAwaited says whether a binding of the input or of the cluster refers to a role for others than some subjects.
func (r *run) isAwaited(kind, namespace, name string, subjects []rbacv1.Subject) bool {
	inNamespaces, _ := r.roleBindings()
	everywhere, _ := r.everywhereThere()

	return slices.ContainsFunc(slices.Concat(inNamespaces, r.everywhere, everywhere), func(b *binding) bool {
		return b.roleRef.Kind == kind && b.roleRef.Name == name && (kind == kindClusterRole || b.Namespace == namespace) &&
			slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
				return !slices.ContainsFunc(subjects, func(of rbacv1.Subject) bool {
					return Account{Namespace: of.Namespace, Name: of.Name}.IsMeant(&s, b.Namespace) && s.Kind != rbacv1.GroupKind
				})
			})
	})
}
