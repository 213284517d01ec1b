package plan

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// cover says how the rules of a live object compare with those that it should have.
type cover struct {
	// grows says that it lacks what it should have, exceeds that it has what it should not, and mayGrow that it may get in place
	// what it lacks.
	grows, exceeds, mayGrow bool
	// common are the rules that both grant.
	common []rbacv1.PolicyRule
}

type coverKey struct {
	live string
	copy *Copy
}

// coverOf compares what a live object holds with its copy. What is not known grows and exceeds everything.
func (p *planner) coverOf(live string, c *Copy) cover {
	key := coverKey{live, c}
	if known, found := p.covers[key]; found {
		return known
	}

	var (
		rules []rbacv1.PolicyRule
		out   = cover{grows: true, exceeds: true, common: []rbacv1.PolicyRule{}}
	)

	out.mayGrow = c.mayGrow(nil)

	if live != "" && json.Unmarshal([]byte(live), &rules) == nil {
		out.grows, out.mayGrow = !isCovered(rules, c.Rules), c.mayGrow(rules)
		if out.exceeds = !isCovered(c.Rules, rules); out.exceeds {
			out.common = common(rules, c.Rules)
		}
	}

	p.covers[key] = out

	return out
}

// isCovered says whether rules grant nothing that the held ones do not.
func isCovered(held, rules []rbacv1.PolicyRule) bool {
	covered, _ := validation.Covers(held, rules)

	return covered
}

// common are rules that grant what both sets do: the rules of one set that the other covers, and the covered parts of the
// rest.
func common(a, b []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out := []rbacv1.PolicyRule{}

	for _, sets := range [][2][]rbacv1.PolicyRule{{a, b}, {b, a}} {
		for _, rule := range sets[0] {
			if isCovered(sets[1], []rbacv1.PolicyRule{rule}) {
				out = append(out, rule)

				continue
			}

			out = slices.AppendSeq(out, func(yield func(rbacv1.PolicyRule) bool) {
				for _, atom := range validation.BreakdownRule(rule) {
					if isCovered(sets[1], []rbacv1.PolicyRule{atom}) && !isCovered(out, []rbacv1.PolicyRule{atom}) && !yield(atom) {
						return
					}
				}
			})
		}
	}

	return out
}
