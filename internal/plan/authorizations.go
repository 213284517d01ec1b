package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
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

// authorizationOf is the one of the authorizations of a namespace that owns what the scope projects there: one to the account
// that writes it. Of several, one for this scope comes before one for no scope in particular, and last comes one that only adds
// to others.
func (p *ScopePlan) authorizationOf(there []facts.Authorization) (facts.Authorization, bool) {
	var (
		best  facts.Authorization
		found bool
	)

	if p.Grantee == "" {
		return best, false
	}

	for _, c := range there {
		if c.Account != p.Grantee || !c.IsFor(p.Scope.Owner) {
			continue
		}

		if !found || compareAuthorizations(c, best) < 0 {
			best, found = c, true
		}
	}

	return best, found
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

// OwnerIn is the owner of copies in a namespace where these authorizations are: garbage collection deletes them with the
// authorization, even when nobody else does. It is nil where no authorization is needed, or none is there.
func (p *ScopePlan) OwnerIn(namespace string, there []facts.Authorization) *projected.OwnerRef {
	c, found := p.authorizationOf(there)
	if !found || !p.MayBeOwned(namespace) {
		return nil
	}

	return &projected.OwnerRef{
		APIVersion: "rbac.authorization.k8s.io/v1", Kind: string(projected.RoleBinding), Name: c.Name, UID: c.UID,
		Namespace: namespace,
	}
}

// MayBeOwned says whether an authorization, where there is one, owns what the scope projects into a namespace. What an install
// writes in the namespace of its resource is owned by that.
func (p *ScopePlan) MayBeOwned(namespace string) bool {
	return p.Grantee != "" && (!p.Scope.Installed() || namespace != p.Scope.Owner.Namespace)
}

// lostAuthorization says whether what the scope has in a namespace belongs to an authorization that no longer exists.
func (p *ScopePlan) lostAuthorization(f *facts.Facts, namespace string) bool {
	for _, live := range f.Projected[namespace] {
		if !p.isMarked(live) || live.OwnerUID == "" || p.Scope.Explicit() {
			continue
		}

		if !slices.ContainsFunc(f.Authorizations[namespace], func(c facts.Authorization) bool { return c.UID == live.OwnerUID }) {
			return true
		}
	}

	return false
}
