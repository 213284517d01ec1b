package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// authorizationIn is the authorization with which what the scope projects into a namespace goes: that to the account as which
// it is written. Of several it is that for this scope, before one for no scope in particular, before one that only adds to
// others.
func (p *ScopePlan) authorizationIn(f *facts.Facts, namespace string) (facts.Authorization, bool) {
	account := p.Scope.Delegate
	if account == "" && p.Scope.Confined {
		account = f.AmbitAccount
	}

	if account == "" {
		return facts.Authorization{}, false // Ambit itself writes there, whatever anybody consented to.
	}

	var (
		best  facts.Authorization
		found bool
	)

	for _, c := range f.Authorizations[namespace] {
		if c.Account != account || !c.IsFor(p.Scope.Owner) {
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

// ownerIn is the owner of copies in a namespace: garbage collection takes them with the authorization, also while nobody else
// does.
func (p *ScopePlan) ownerIn(f *facts.Facts, namespace string) projected.OwnerRef {
	c, found := p.authorizationIn(f, namespace)
	if !found || p.Scope.Explicit() {
		return projected.OwnerRef{}
	}

	return projected.OwnerRef{
		APIVersion: "rbac.authorization.k8s.io/v1", Kind: string(projected.RoleBinding), Name: c.Name, UID: c.UID,
		Namespace: namespace,
	}
}

// lostAuthorization says whether what the scope has in a namespace belongs to an authorization that is there no more.
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
