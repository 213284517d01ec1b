package home

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/consent"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// compile says what the resources of a home mean to this manager.
func (r *Reconciler) compile(resources []resource) []scope.Scope {
	scopes := make([]scope.Scope, 0, len(resources))

	for i := range resources {
		s := resources[i].compile()
		if s.Delegate == "" {
			s.Delegate, s.DelegateByDefault = r.DefaultDelegate, r.DefaultDelegate != ""
		}

		if r.isNarrow() {
			s = compile.Namespaced(s)
		}

		scopes = append(scopes, s)
	}

	return scopes
}

// isNarrow says whether nothing may be read cluster-wide.
func (r *Reconciler) isNarrow() bool { return len(r.Homes) > 0 }

// toWatch are the namespaces of which something has to be known: members, and those in which something may be left.
func (r *Reconciler) toWatch(home string, scopes []scope.Scope) []string {
	if !r.isNarrow() {
		return nil
	}

	names := r.Store.Holding(home)
	for i := range scopes {
		names = slices.Concat(names, scopes[i].Members.Named, scopes[i].Reported, scopes[i].Failed)
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// identities say who writes for each scope of a plan.
func (r *Reconciler) identities(p *plan.Plan, f *facts.Facts) []apply.Identity {
	out := make([]apply.Identity, len(p.Scopes))
	for i := range p.Scopes {
		out[i] = r.identity(p.Scopes[i].Scope, f)
	}

	return out
}

// missingAccount says what to do about an account that does not exist. That of a manual scope is made by the first consent.
func missingAccount(s *scope.Scope) string {
	what := fmt.Sprintf("service account %s/%s does not exist, so nothing can be written as it; ", s.Home, s.Delegate)

	switch {
	case !s.Manual || s.Delegate != scope.ManualDelegate:
		return what + "create it"
	case len(s.Members.Named) == 0:
		return what + "it is made when a member is authorized: ambit authorize NAMESPACE --to " + s.Home
	default:
		return what + "it is made when a member is authorized: " + consent.CommandFor(s.Members.Named[0], s)
	}
}

// isOwn says whether an account is the one that Ambit runs as, or that it acts as in members anyway.
func (r *Reconciler) isOwn(namespace, name string) bool {
	return name != "" && r.ambitAccount(namespace) == name
}

// ownAccount is the service account of a home that Ambit runs as; empty when it is not of that home.
func (r *Reconciler) ownAccount(home string) string { return scope.AccountIn(home, r.OwnUser) }

// ambitAccount is the service account of a home that Ambit runs as, or acts as in members.
func (r *Reconciler) ambitAccount(home string) string {
	return cmp.Or(r.ownAccount(home), scope.GrantedAccount(r.OwnUser, r.Homes, home))
}

// own is Ambit itself for a home.
func (r *Reconciler) own(home string) apply.Identity {
	if name := scope.GrantedAccount(r.OwnUser, r.Homes, home); name != "" {
		return apply.OwnWith(home, name)
	}

	return apply.Own()
}

// orphansAs is who takes away what is left of scopes of a home that are gone. Where Ambit itself writes nothing, nobody does: it
// is not known any more as whom it was written.
func (r *Reconciler) orphansAs(home string) apply.Identity {
	if r.NeedDelegate {
		return apply.Identity{}
	}

	return r.own(home)
}

func (r *Reconciler) identity(s *scope.Scope, f *facts.Facts) apply.Identity {
	switch {
	case s.Delegate == "" && r.NeedDelegate:
		return apply.Nobody("the scope names no service account, and this Ambit writes only as one that a scope names; " +
			"set spec.serviceAccountName to an account of namespace " + s.Home)
	case s.Delegate == "":
		return r.own(s.Home)
	case r.isOwn(s.Home, s.Delegate) && s.Manual && !s.Deleting() && !r.NeedDelegate && len(r.Homes) == 0:
		return apply.Nobody(fmt.Sprintf("spec.manualManagement lets nothing be used but what the owners of namespaces granted, and "+
			"service account %s/%s is Ambit's own, which may do more; name another one in spec.serviceAccountName", s.Home, s.Delegate))
	case r.isOwn(s.Home, s.Delegate):
		return r.own(s.Home)
	}

	// An account that is gone and made again is somebody else's. What it was granted is taken back even so: rights do not
	// ask whether their account exists, and a namespace on its way out loses its accounts before its scopes.
	if _, exists := f.Home.Accounts[s.Delegate]; !exists && !s.Deleting() && !f.Home.Terminating {
		return apply.Nobody(missingAccount(s))
	}

	id, err := apply.ServiceAccount(s.Home, s.Delegate)
	if err != nil {
		return apply.Nobody(err.Error())
	}

	return id
}
