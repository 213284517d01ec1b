package authority

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Place is what is needed, or missing, in a namespace; in the cluster itself, when Namespace is empty.
type Place struct {
	Namespace string
	// Rules are needed as they are.
	Rules []rbacv1.PolicyRule
	// Handed are rules that are handed out in roles: whoever writes those must hold them, or be allowed to escalate and to
	// bind. What is missing of them is among the Rules of an answer.
	Handed []rbacv1.PolicyRule
}

// MissingAt returns what the held rules do not cover of what is needed in a place; nil when they cover all.
func MissingAt(held []rbacv1.PolicyRule, p Place) []rbacv1.PolicyRule {
	missing := MissingToWrite(held, p.Rules)

	resource := rolesResource
	if p.Namespace == "" {
		resource = clusterRolesResource
	}

	if handed := Missing(held, p.Handed); Missing(held, []rbacv1.PolicyRule{rule(resource, "", "bind", "escalate")}) != nil {
		missing = append(missing, handed...)
	}

	if len(missing) == 0 {
		return nil
	}

	return Merge(missing)
}

// Places merges what is needed in the same place, and sorts.
func Places(places []Place) []Place {
	byName := map[string]*Place{}

	for _, p := range places {
		if byName[p.Namespace] == nil {
			byName[p.Namespace] = &Place{Namespace: p.Namespace}
		}

		all := byName[p.Namespace]
		all.Rules = append(all.Rules, p.Rules...)
		all.Handed = append(all.Handed, p.Handed...)
	}

	out := make([]Place, 0, len(byName))

	for _, p := range byName {
		p.Rules, p.Handed = Merge(p.Rules), Merge(p.Handed)
		out = append(out, *p)
	}

	slices.SortFunc(out, func(a, b Place) int { return cmp.Compare(a.Namespace, b.Namespace) })

	return out
}
