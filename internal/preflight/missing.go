package preflight

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// Missing returns what is missing of a need for somebody who holds some rules: the least that has to be granted. Once it is
// granted nothing is missing, and without any one of its rules something is.
func (n *Need) Missing(held []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	missing := narrow(n.lacks(held))
	if !n.isSpared(held, missing) {
		return missing
	}

	// A rule that is needed for itself, such as one to escalate, can make others unnecessary.
	for i := 0; i < len(missing); {
		rest := slices.Delete(slices.Clone(missing), i, i+1)
		if len(n.lacks(slices.Concat(held, rest))) > 0 {
			i++
		} else {
			missing = rest
		}
	}

	return missing
}

// lacks are all rules of a need that are not held.
func (n *Need) lacks(held []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	missing := authority.MissingToWrite(held, n.Rules)

	for i := range n.Handed {
		h := &n.Handed[i]

		lacks := authority.Missing(held, h.Rules)
		if len(lacks) == 0 || holds(held, h.Instead) {
			continue
		}

		// No Role of a namespace can give rules about URLs (ValidatePolicyRule in k8s.io/kubernetes/pkg/apis/rbac/validation), but
		// one can let somebody bind a ClusterRole that has such.
		if n.Namespace != Everywhere && slices.ContainsFunc(lacks, isForURLs) && slices.Equal(h.Instead.Verbs, []string{"bind"}) {
			lacks = []rbacv1.PolicyRule{h.Instead}
		}

		missing = append(missing, lacks...)
	}

	return missing
}

func isForURLs(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 }

func holds(held []rbacv1.PolicyRule, one rbacv1.PolicyRule) bool {
	return authority.Missing(held, []rbacv1.PolicyRule{one}) == nil
}

// isSpared says whether the missing rules, once granted, let the subject hand out rules without holding them.
func (n *Need) isSpared(held, missing []rbacv1.PolicyRule) bool {
	all := slices.Concat(held, missing)

	return slices.ContainsFunc(n.Handed, func(h Handed) bool { return !holds(held, h.Instead) && holds(all, h.Instead) })
}

// narrow drops the rules that others among them allow, too, and writes the rest as few rules.
func narrow(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var single []rbacv1.PolicyRule
	for right := range rights.Each(authority.Merge(rules)) {
		single = append(single, right.Rule())
	}

	for i := 0; i < len(single); {
		others := slices.Concat(single[:i], single[i+1:])
		if rights.Covers(others, single[i:i+1]) {
			single = others
		} else {
			i++
		}
	}

	if len(single) == 0 {
		return nil
	}

	return authority.Merge(single)
}
