package plan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// grantedTo is the account to which the owners of members grant what the scope projects there; empty where Ambit itself writes,
// whatever anybody authorized, and where something else owns the copies.
func (p *ScopePlan) grantedTo(f *facts.Facts) string {
	switch {
	case p.Scope.Installed() && p.Scope.Confined:
		return p.Scope.Delegate
	case p.Scope.Explicit():
		return ""
	case p.Scope.Delegate == "" && p.Scope.Confined:
		return f.AmbitAccount
	default:
		return p.Scope.Delegate
	}
}

// maxOwners bounds the authorizations that own a copy. The owner of a namespace may make any number of them, and every plan
// compares the rules of these.
const maxOwners = 5

// authorizationsOf are those of the authorizations of a namespace that are to the account which writes what the scope projects
// there. One for this scope comes before one for no scope in particular, and last comes one that only adds to others. Where there
// is none of these, they are those for other scopes, since the account may write by them, too.
func (p *ScopePlan) authorizationsOf(there []facts.Authorization) []facts.Authorization {
	if p.Grantee == "" {
		return nil
	}

	out := slices.DeleteFunc(slices.Clone(there), func(c facts.Authorization) bool { return c.Account != p.Grantee })

	if slices.ContainsFunc(out, p.isForThis) {
		out = slices.DeleteFunc(out, func(c facts.Authorization) bool { return !p.isForThis(c) })
	}

	slices.SortFunc(out, compareAuthorizations)

	return out[:min(len(out), maxOwners)]
}

// isForThis says whether an authorization is for the scope, be it for no scope in particular.
func (p *ScopePlan) isForThis(c facts.Authorization) bool { return c.IsFor(p.Scope.Owner) }

// ownsAlone says whether some authorizations, as authorizationsOf returns them, are one that owns everything, whatever it grants.
func (p *ScopePlan) ownsAlone(of []facts.Authorization) bool {
	return len(of) == 1 && p.isForThis(of[0])
}

func compareAuthorizations(a, b facts.Authorization) int {
	rank := func(c facts.Authorization) int {
		switch {
		case strings.Contains(c.Name, "+"):
			return 2
		case c.ScopeName == "":
			return 1
		default:
			return 0
		}
	}

	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

// OwnersIn are the owners of a copy in a namespace where these authorizations are: garbage collection deletes it with the last
// of them, even when nobody else does. They are those by each of which alone the account may write the copy, so that it neither
// goes while one of them remains nor outlasts them. Where none suffices alone, it goes with the first of those for the scope,
// or of those for other scopes that suffice together. There are none where no authorization is needed, or none is there.
func (p *ScopePlan) OwnersIn(namespace string, there []facts.Authorization, c *Copy) []projected.OwnerRef {
	if !p.MayBeOwned(namespace) {
		return nil
	}

	authorizations := p.authorizationsOf(there)

	return ownerRefs(namespace, p.ownersAmong(authorizations, func(of ...facts.Authorization) bool {
		return newAllowance(rulesOf(of)...).allows(c, p.Copies)
	}))
}

// ownersAmong takes what authorizationsOf returned. allows says whether some of them suffice together.
func (p *ScopePlan) ownersAmong(
	authorizations []facts.Authorization, allows func(of ...facts.Authorization) bool,
) []facts.Authorization {
	if p.ownsAlone(authorizations) {
		return authorizations
	}

	owners := collect.Filter(authorizations, func(a facts.Authorization) bool { return allows(a) })

	if len(owners) == 0 && len(authorizations) > 0 && (p.isForThis(authorizations[0]) || allows(authorizations...)) {
		return authorizations[:1]
	}

	return owners
}

func ownerRefs(namespace string, owners []facts.Authorization) []projected.OwnerRef {
	if len(owners) == 0 {
		return nil
	}

	return collect.Map(owners, func(a facts.Authorization) projected.OwnerRef {
		return projected.OwnerRef{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: string(projected.RoleBinding), Name: a.Name,
			UID: a.UID, Namespace: namespace,
		}
	})
}

// allowance is what one authorization allows, and of which copies that is known.
type allowance struct {
	rules []rbacv1.PolicyRule
	known map[*Copy]bool
}

func rulesOf(authorizations []facts.Authorization) []string {
	return collect.Map(authorizations, func(a facts.Authorization) string { return a.Rules })
}

// newAllowance reads rules; none where they are not known, or stand for more rights than are compared.
func newAllowance(texts ...string) *allowance {
	a := &allowance{known: map[*Copy]bool{}}

	for _, text := range texts {
		var rules []rbacv1.PolicyRule
		if text != "" && json.Unmarshal([]byte(text), &rules) == nil {
			a.rules = append(a.rules, rules...)
		}
	}

	if rights.Count(a.rules) > rights.Max {
		a.rules = nil
	}

	return a
}

// allows says whether whoever holds nothing else may write a copy.
func (a *allowance) allows(c *Copy, copies []Copy) bool {
	is, known := a.known[c]
	if !known {
		is = a.covers(c, copies)
		a.known[c] = is
	}

	return is
}

func (a *allowance) covers(c *Copy, copies []Copy) bool {
	if len(a.rules) == 0 || !rights.Covers(a.rules, []rbacv1.PolicyRule{rbacRule(c.Kind, "", "create")}) {
		return false
	}

	h := c.Handout(copies)

	return h.Known && rights.Count(h.Rules) <= rights.Max && rights.Covers(a.rules, h.Rules) ||
		rights.Covers(a.rules, []rbacv1.PolicyRule{h.Instead})
}

// MayBeOwned says whether an authorization, where there is one, owns what the scope projects into a namespace. What an install
// writes in the namespace of its resource is owned by that.
func (p *ScopePlan) MayBeOwned(namespace string) bool {
	return p.Grantee != "" && (!p.Scope.Installed() || namespace != p.Scope.Owner.Namespace)
}

// lostAuthorization says whether what the scope has in a namespace belongs to authorizations of which none exists any more.
func (p *ScopePlan) lostAuthorization(f *facts.Facts, namespace string) bool {
	for _, live := range f.Projected[namespace] {
		if p.isMarked(live) && live.Owners != "" && !p.Scope.Explicit() && !isOwned(live, f.Authorizations[namespace]) {
			return true
		}
	}

	return false
}

// isOwned says whether an object has one of some authorizations as an owner.
func isOwned(live *facts.Projected, by []facts.Authorization) bool {
	owners := live.OwnerUIDs()

	return slices.ContainsFunc(by, func(a facts.Authorization) bool { return slices.Contains(owners, a.UID) })
}
