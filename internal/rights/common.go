package rights

import (
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// maxParts bounds the rules of which Common makes what several rules allow in part.
const maxParts = 1_000

// Common are rules that allow what both sets do. Where that is made of more than maxParts rules, nothing counts as common.
//
// What two rules have in common is one rule: what their lists have in common, one after the other. So nothing is broken down.
func Common(a, b []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out, first, second := []rbacv1.PolicyRule{}, NewHeld(a), NewHeld(b)
	seen := map[string]struct{}{}

	add := func(r *rbacv1.PolicyRule) {
		key, err := json.Marshal(r)
		if _, known := seen[string(key)]; err == nil && !known {
			seen[string(key)] = struct{}{}
			out = append(out, *r)
		}
	}

	whole := make([]bool, len(b))
	for j := range b {
		if whole[j] = first.covers(b[j : j+1]); whole[j] {
			add(&b[j])
		}
	}

	for i := range a {
		if second.covers(a[i : i+1]) {
			add(&a[i])

			continue
		}

		for j := range b {
			if whole[j] {
				continue
			}

			for _, part := range commonOf(&first.rules[i], &second.rules[j]) {
				add(&part)
			}

			if len(out) > maxParts+len(a)+len(b) {
				return []rbacv1.PolicyRule{}
			}
		}
	}

	return out
}

// commonOf is what two rules have in common: at most one rule about resources, and one about URLs.
func commonOf(a, b *heldRule) []rbacv1.PolicyRule {
	verbs := both(&a.verbs, &b.verbs, a.allowsVerb, b.allowsVerb)
	if len(verbs) == 0 {
		return nil
	}

	var out []rbacv1.PolicyRule

	resources := both(&a.resources, &b.resources,
		func(r string) bool { return a.allowsResource(r, inAnyResource(r)) },
		func(r string) bool { return b.allowsResource(r, inAnyResource(r)) })
	names, none := commonNames(&a.names, &b.names)

	if groups := both(&a.groups, &b.groups, a.allowsGroup, b.allowsGroup); len(groups) > 0 && len(resources) > 0 && !none {
		out = append(out, rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names})
	}

	ofA, ofB := words{list: a.urls}, words{list: b.urls}
	if urls := both(&ofA, &ofB, a.allowsURL, b.allowsURL); len(urls) > 0 && len(a.names.list) == 0 && len(b.names.list) == 0 {
		out = append(out, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: urls})
	}

	return out
}

// both are the words of two lists that the other one allows as well.
func both(a, b *words, allowsA, allowsB func(string) bool) []string {
	out := collect.Filter(a.list, allowsB)

	for _, word := range b.list {
		if allowsA(word) && !a.has(word) {
			out = append(out, word)
		}
	}

	return out
}

// commonNames are the names to which both lists limit; none says that there are none, and no names that neither limits.
func commonNames(a, b *words) (names []string, none bool) {
	switch {
	case len(a.list) == 0:
		return b.list, false
	case len(b.list) == 0:
		return a.list, false
	}

	for _, name := range a.list {
		if b.has(name) {
			names = append(names, name)
		}
	}

	return names, len(names) == 0
}
