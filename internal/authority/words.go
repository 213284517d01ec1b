package authority

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Words say rules in one line, such as "create roles; get, list secrets". After limit characters the rest is counted.
func Words(rules []rbacv1.PolicyRule, limit int) string {
	var (
		out  []string
		used int
	)

	for i, w := range Lines(rules) {
		if used += len(w); used > limit && len(out) > 0 {
			return printable.Counted(out, "; ", len(rules)-i)
		}

		out = append(out, w)
	}

	return strings.Join(out, "; ")
}

// Lines are the words of each rule. What may be taken for more words than one is quoted: rules may hold anything.
func Lines(rules []rbacv1.PolicyRule) []string {
	return collect.Map(collect.Pointers(rules), words)
}

func words(r *rbacv1.PolicyRule) string {
	verbs, what := list(r.Verbs), list(slices.Concat(r.Resources, r.NonResourceURLs))

	// Asterisks alone do not say of what they are all.
	whole := isOne(r.Resources, rbacv1.ResourceAll) && len(r.NonResourceURLs) == 0
	everywhere := isOne(r.NonResourceURLs, rbacv1.NonResourceAll) && len(r.Resources) == 0

	switch {
	case whole:
		what = "all resources"
	case everywhere:
		what = "all URLs"
	}

	if isOne(r.Verbs, rbacv1.VerbAll) && (whole || everywhere) {
		verbs = "do everything with"
	}

	if len(r.ResourceNames) > 0 {
		what += " named " + list(r.ResourceNames)
	}

	// For the API server, a request that names nothing has the empty name.
	if slices.Contains(r.ResourceNames, "") {
		what += " (the name of requests without one)"
	}

	if groups := groupsOf(r, whole); groups != "" {
		what += " of " + groups
	}

	return verbs + " " + what
}

// groupsOf are the API groups of a rule in words, where whole says that it is about all of their resources.
func groupsOf(r *rbacv1.PolicyRule, whole bool) string {
	switch {
	case whole && isOne(r.APIGroups, rbacv1.APIGroupAll):
		return "all API groups"
	case whole && isOne(r.APIGroups, ""):
		return "the core API group"
	case !whole && (isOne(r.APIGroups, "") || isOne(r.APIGroups, rbacv1.GroupName)):
		return "" // A resource of the core group or of Kubernetes' RBAC is known by its name.
	default:
		return list(r.APIGroups)
	}
}

func isOne(values []string, value string) bool { return len(values) == 1 && values[0] == value }

func list(values []string) string { return strings.Join(printable.Names(values), ", ") }
