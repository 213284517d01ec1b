// Package clusterwide finds out what accounts hold in the whole cluster, whatever their scopes say, as facts for the planner. It
// sorts rules as "ambit narrow" does, so that what that leaves in the whole cluster is not reported.
package clusterwide

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Lookup says whether a resource that is none of Kubernetes' own is known to have no namespace.
type Lookup func(group, resource string) bool

// Of returns the ClusterRoleBindings of the accounts that plans for a reconcile key are about, with what each gives that would
// have an effect in a namespace. What gives nothing of the kind is left out.
func Of(store *read.Store, reconcileKey string, scopes []scope.Scope, isClusterScoped Lookup) facts.ClusterBindings {
	found, more, known := store.ClusterGrants(reconcileKey, asked(reconcileKey, scopes))
	out := facts.ClusterBindings{Known: known, More: more}
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

// asked are the accounts of the operator namespace; where there is none, the subjects of what is bound.
func asked(reconcileKey string, scopes []scope.Scope) *read.Asked {
	if namespace, install := scope.InstallNamespace(reconcileKey); install {
		return &read.Asked{Namespaces: []string{namespace}}
	}

	if reconcileKey != scope.Cluster {
		return &read.Asked{Namespaces: []string{reconcileKey}}
	}

	out := &read.Asked{}

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

	slices.Sort(out.Namespaces)
	out.Namespaces = slices.Compact(out.Namespaces)

	return out
}

func rightsOf(rights []reach.Right) []facts.ClusterRight {
	out := make([]facts.ClusterRight, len(rights))
	for i := range rights {
		out[i] = facts.ClusterRight{Verbs: rights[i].Verbs, Resource: rights[i].Resource, Sensitive: rights[i].Sensitive}
	}

	return out
}
