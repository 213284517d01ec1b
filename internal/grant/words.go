package grant

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// Words say what the rules allow, a line each, for whoever grants them.
func Words(rules []rbacv1.PolicyRule) []string {
	out := make([]string, 0, len(rules))
	for i := range rules {
		out = append(out, words(&rules[i]))
	}

	return out
}

func words(r *rbacv1.PolicyRule) string {
	what := list(r.Resources)
	if slices.Equal(r.Resources, []string{rbacv1.ResourceAll}) {
		what = "everything"
	}

	if len(r.ResourceNames) > 0 {
		what += " named " + list(r.ResourceNames)
	}

	if groups := list(r.APIGroups); groups != `""` && groups != rbacv1.APIGroupAll {
		what += " of " + groups
	}

	return fmt.Sprintf("%s: %s", list(r.Verbs), what)
}

// list quotes what may be taken for more than one: rules may hold anything, and whoever reads this decides by it.
func list(values []string) string { return strings.Join(printable.Names(values), ", ") }
