package read

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ClusterBindings returns the ClusterRoleBindings of the accounts that plans for a reconcile key are about, with what each gives
// that would have an effect in a namespace, whatever their scopes say. What gives nothing of the kind is left out: rules are
// sorted as "ambit narrow" does, so that what that leaves in the whole cluster is not reported. isClusterScoped says whether a
// resource that is none of Kubernetes' own is known to have no namespace.
func (s *Store) ClusterBindings(
	reconcileKey scope.Key, scopes []scope.Scope, isClusterScoped func(group, resource string) bool,
) facts.ClusterBindings {
	found, more := s.ClusterGrants(reconcileKey, accountsOf(reconcileKey, scopes))
	out := facts.ClusterBindings{More: more}
	sorted := map[string][]facts.ClusterRight{}

	for i := range found {
		b := &found[i].ClusterBinding

		rights, is := sorted[b.Role]
		if !is {
			rights = rightsOf(reach.InNamespaces(scope.WithoutGuard(found[i].Rules), isClusterScoped))
			sorted[b.Role] = rights
		}

		if b.Rights = rights; len(rights) > 0 && len(b.Subjects) > 0 {
			out.Giving = append(out.Giving, *b)
		}
	}

	return out
}

// accountsOf are the accounts of the operator namespace; where there is none, the subjects of what is bound.
func accountsOf(reconcileKey scope.Key, scopes []scope.Scope) *Asked {
	if reconcileKey.Family != scope.Templates {
		return &Asked{Namespaces: []string{reconcileKey.Namespace}}
	}

	out := &Asked{}

	for i := range scopes {
		for _, b := range scopes[i].Binds {
			for j := range b.Subjects {
				s := scope.Holder(&b.Subjects[j])
				if s.Namespace != "" {
					out.Namespaces = append(out.Namespaces, s.Namespace)
				} else {
					out.Others = append(out.Others, s)
				}
			}
		}
	}

	out.Namespaces = slices.Compact(slices.Sorted(slices.Values(out.Namespaces)))

	return out
}

func rightsOf(rights []reach.Right) []facts.ClusterRight {
	return collect.Map(rights, func(r reach.Right) facts.ClusterRight {
		return facts.ClusterRight{Verbs: r.Verbs, Resource: r.Resource, Sensitive: r.Sensitive}
	})
}
