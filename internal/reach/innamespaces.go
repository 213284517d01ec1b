package reach

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxAsked bounds how many resources are looked up for one set of rules, which may name any number.
const maxAsked = 64

// InNamespaces are the rights, of those that rules give in the whole cluster, that would have an effect in a namespace, what
// matters most first, and rights that are limited to names last. isClusterScoped says of a resource that is none of Kubernetes'
// own whether it is known to have no namespace. An unknown resource counts as namespaced, as it does for Sort.
func InNamespaces(rules []rbacv1.PolicyRule, isClusterScoped func(group, resource string) bool) []Right {
	var anyName, byName pile

	k := &Kinds{known: builtIn().known, ask: limited(isClusterScoped)}

	for i := range rules {
		rule := &rules[i]

		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				// A namespace itself has none, whatever a Role may say of the one in which it is.
				r := Resource{group, name}
				if IsNamespaceItself(r) {
					continue
				}

				verbs := k.split(r, rule, &Sorted{}).verbs

				// A request for all objects has the empty name, for the API server.
				if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, "") {
					byName.add(r, verbs, nil)
				} else {
					anyName.add(r, verbs, nil)
				}
			}
		}
	}

	named := Rights(byName.rules)
	for i := range named {
		named[i].Resource += facts.ByName
		named[i].Sensitive = false // Those are not worth a warning.
	}

	slices.SortFunc(named, func(a, b Right) int { return cmp.Compare(a.Resource, b.Resource) })

	return append(Rights(anyName.rules), named...)
}

func limited(isClusterScoped func(group, resource string) bool) func(Resource) Reach {
	asked := map[Resource]Reach{}

	return func(r Resource) Reach {
		reach, known := asked[r]
		if known || len(asked) >= maxAsked || strings.Contains(r.Group+r.Name, wildcard) {
			return reach
		}

		if isClusterScoped(r.Group, r.Name) {
			reach = ClusterScoped
		}

		asked[r] = reach

		return reach
	}
}

// IsBuiltIn says whether Kubernetes itself has a resource, or a subresource as parent/name.
func IsBuiltIn(r Resource) bool { return builtIn().known[r] != Unknown }

// BuiltInClusterScoped are Kubernetes' own resources that are in no namespace, as "resource" or "resource.group". They are shared
// and must not be changed.
func BuiltInClusterScoped() map[string]struct{} { return builtInClusterScoped() }

//nolint:gochecknoglobals // It never changes.
var builtInClusterScoped = sync.OnceValue(func() map[string]struct{} {
	out := map[string]struct{}{}

	for r, reach := range builtIn().known {
		if reach == ClusterScoped && !strings.Contains(r.Name, "/") {
			out[strings.TrimSuffix(r.Name+"."+r.Group, ".")] = struct{}{}
		}
	}

	return out
})

// builtIn are Kubernetes' own resources. They are shared and must not be changed.
//
//nolint:gochecknoglobals // It never changes.
var builtIn = sync.OnceValue(NewKinds)
