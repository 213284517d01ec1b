package grant

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Words say what the rules allow, a line each, for whoever grants them.
func Words(rules []rbacv1.PolicyRule) []string {
	return collect.Map(collect.Pointers(rules), words)
}

func words(r *rbacv1.PolicyRule) string {
	what := list(r.Resources)
	if slices.Equal(r.Resources, []string{rbacv1.ResourceAll}) {
		what = "everything"
	}

	if len(r.ResourceNames) > 0 {
		what += named(r.ResourceNames)
	}

	switch groups := list(r.APIGroups); {
	case groups == rbacv1.APIGroupAll && !slices.Contains(r.Resources, rbacv1.ResourceAll):
		what += " of every API group"
	case groups != `""` && groups != rbacv1.APIGroupAll:
		what += " of " + groups
	}

	// What a ClusterRole holds is not among these rules, and may change.
	if slices.Contains(r.Verbs, "bind") && slices.Contains(r.Resources, "clusterroles") {
		what += ", so all that these allow here, later too"
	}

	return fmt.Sprintf("%s: %s", list(r.Verbs), what)
}

// named says to which names a rule is limited. A request for all objects, or for a new one, names none, so the empty name is not
// that of nothing (ResourceNameMatches in k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go).
func named(names []string) string {
	some := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })

	switch {
	case len(some) == len(names):
		return " named " + list(names)
	case len(some) == 0:
		return " in requests that name none"
	default:
		return " named " + list(some) + ", and requests that name none"
	}
}

// list quotes what may be taken for more than one: rules may hold anything, and whoever reads this decides by it.
func list(values []string) string { return strings.Join(printable.Names(values), ", ") }
