package authority

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Words say rules in one line, such as "create roles; get, list secrets". After limit characters the rest is counted.
func Words(rules []rbacv1.PolicyRule, limit int) string {
	var (
		out  []string
		used int
	)

	for i := range rules {
		w := words(&rules[i])
		if used += len(w); used > limit && len(out) > 0 {
			return fmt.Sprintf("%s and %d more", strings.Join(out, "; "), len(rules)-i)
		}

		out = append(out, w)
	}

	return strings.Join(out, "; ")
}

func words(r *rbacv1.PolicyRule) string {
	what := strings.Join(append(r.Resources, r.NonResourceURLs...), ", ")
	if len(r.ResourceNames) > 0 {
		what += " named " + strings.Join(r.ResourceNames, ", ")
	}

	// A resource of the core group and of Kubernetes' RBAC is known by its name.
	if groups := strings.Join(r.APIGroups, ", "); groups != "" && groups != rbacv1.GroupName {
		what += " of " + groups
	}

	return strings.Join(r.Verbs, ", ") + " " + what
}
