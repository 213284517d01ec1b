package consent

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
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
	what := strings.Join(r.Resources, ", ")
	if what == rbacv1.ResourceAll {
		what = "everything"
	}

	if len(r.ResourceNames) > 0 {
		what += " named " + strings.Join(r.ResourceNames, ", ")
	}

	if groups := strings.Join(r.APIGroups, ", "); groups != "" && groups != rbacv1.APIGroupAll {
		what += " of " + groups
	}

	return fmt.Sprintf("%s: %s", strings.Join(r.Verbs, ", "), what)
}
