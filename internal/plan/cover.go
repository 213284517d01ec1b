package plan

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// cover says how the rules, or the subjects, of a live object compare with those that it should have.
type cover struct {
	// grows says that it lacks what it should have, exceeds that it has what it should not.
	grows, exceeds bool
	// common are the rules that both grant.
	common []rbacv1.PolicyRule
}

// coverKey is rules, or subjects, as JSON, and the copy that they are compared with.
type coverKey struct {
	live string
	copy *Copy
}

// coverOf compares what a live object holds with its copy. What is not known grows and exceeds everything, and so does what
// stands for more rights than are compared: whoever may write the object decides how many those are.
func (p *planner) coverOf(live string, c *Copy) cover {
	key := coverKey{live, c}
	if known, found := p.covers[key]; found {
		return known
	}

	var (
		rules []rbacv1.PolicyRule
		out   = cover{grows: true, exceeds: true, common: []rbacv1.PolicyRule{}}
	)

	if live != "" && json.Unmarshal([]byte(live), &rules) == nil && rights.Count(rules) <= rights.Max {
		out.grows = !rights.Covers(rules, c.Rules)
		if out.exceeds = !rights.Covers(c.Rules, rules); out.exceeds {
			out.common = rights.Common(rules, c.Rules)
		}
	}

	p.covers[key] = out

	return out
}

// loses says whether somebody whom a live binding names is not to hold its role any more. Where nothing is known of them,
// somebody may.
func (p *planner) loses(live *facts.Projected, c *Copy) bool {
	key := coverKey{live.Subjects, c}
	if known, found := p.covers[key]; found {
		return known.exceeds
	}

	var subjects []rbacv1.Subject

	unknown := live.Subjects == "" || json.Unmarshal([]byte(live.Subjects), &subjects) != nil
	out := unknown || slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return !slices.Contains(c.Subjects, s) })
	p.covers[key] = cover{exceeds: out}

	return out
}
