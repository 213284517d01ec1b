// Package authority says what an identity needs to do what a plan asks of it, and what of that it lacks. It is pure: the rules
// that the identity holds are handed in, and the API server has the last word at every write.
package authority

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Review asks what somebody may do in a namespace. The API server answers for a namespace only; for what has none, one is asked
// about that cannot exist, in which nothing is held but what is held everywhere.
func Review(namespace string) *authorizationv1.SelfSubjectRulesReview {
	return &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: cmp.Or(namespace, scope.Cluster)},
	}
}

// Held are the rules in the API server's answer to whoever asks what they may do in a namespace.
func Held(status *authorizationv1.SubjectRulesReviewStatus) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(status.ResourceRules)+len(status.NonResourceRules))
	for _, r := range status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
		})
	}

	for _, r := range status.NonResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
	}

	return rules
}

// Missing returns the part of the wanted rules that the held ones do not cover, merged and sorted; nil when they cover all.
func Missing(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if left := rights.Missing(held, wanted); len(left) > 0 {
		return Merge(left)
	}

	return nil
}

// MissingToWrite is Missing for rights that are used, and not handed out. The request that creates an object does not name it,
// and is allowed by a rule that is limited to the empty name, too.
func MissingToWrite(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	left := slices.DeleteFunc(rights.Missing(held, wanted), func(r rbacv1.PolicyRule) bool {
		if len(r.ResourceNames) > 0 || !slices.Equal(r.Verbs, []string{create}) ||
			slices.ContainsFunc(r.Resources, func(what string) bool { return what == rbacv1.ResourceAll || strings.Contains(what, "/") }) {
			return false
		}

		r.ResourceNames = []string{""}

		return rights.Covers(held, []rbacv1.PolicyRule{r})
	})

	if len(left) > 0 {
		return Merge(left)
	}

	return nil
}

// Merge writes rules in as few as possible, sorted, without allowing anything more or less.
func Merge(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	single := map[rights.Right]struct{}{}
	for right := range rights.Each(rules) {
		single[right] = struct{}{}
	}

	maps.DeleteFunc(single, func(r rights.Right, _ struct{}) bool {
		anyName := r
		anyName.Name, anyName.Named = "", false
		_, implied := single[anyName]

		return r.Named && implied
	})

	lines := make([]line, 0, len(single))
	for right := range single {
		rule := right.Rule()
		lines = append(lines, line{
			verbs: rule.Verbs, groups: rule.APIGroups, resources: rule.Resources, names: rule.ResourceNames, urls: rule.NonResourceURLs,
		})
	}

	// One dimension after the other: lines that differ in it alone become one line. A line stays a product of its
	// dimensions, so nothing is added.
	for _, dimension := range []int{verbs, names, resources, groups} {
		lines = unite(lines, dimension)
	}

	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(slices.Compare(a[groups], b[groups]), slices.Compare(a[resources], b[resources]),
			slices.Compare(a[names], b[names]), slices.Compare(a[urls], b[urls]), slices.Compare(a[verbs], b[verbs]))
	})

	return collect.Map(lines, func(l line) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: l[groups], Resources: l[resources], ResourceNames: l[names], NonResourceURLs: l[urls], Verbs: l[verbs],
		}
	})
}

// line is a rule by its dimensions.
type line [5][]string

const (
	verbs = iota
	groups
	resources
	names
	urls
)

// unite makes one line of those that differ in one dimension only. A line for any name is never united with lines for some names:
// where their other dimensions are the same, it implies these, and they are gone.
func unite(lines []line, dimension int) []line {
	found := map[string]*line{}

	for _, l := range lines {
		rest := l
		rest[dimension] = nil
		key := rest.key()

		if found[key] == nil {
			found[key] = &rest
		}

		found[key][dimension] = append(found[key][dimension], l[dimension]...)
	}

	out := make([]line, 0, len(found))

	for _, l := range found {
		slices.Sort(l[dimension])
		out = append(out, *l)
	}

	return out
}

// key tells lines apart; the separators are bytes that no part can hold.
func (l *line) key() string {
	var key []byte

	for _, dimension := range l {
		for _, value := range dimension {
			key = append(append(key, value...), 0)
		}

		key = append(key, 1)
	}

	return string(key)
}
