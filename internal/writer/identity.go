package writer

import (
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// identity is the account as which Ambit writes for a scope, with the content of its operator namespace.
func (m *Manager) identity(s *scope.Scope, in *facts.OperatorNamespace) apply.Identity {
	w := m.Of(s, in.Accounts, in.Terminating)

	switch {
	case w.Nobody != "":
		return apply.Nobody(w.Nobody)
	case w.Account == "":
		return m.Own(s.OperatorNamespace)
	}

	id, err := apply.ServiceAccount(s.OperatorNamespace, w.Account)
	if err != nil {
		return apply.Nobody(err.Error())
	}

	return id
}

// In says as which account Ambit writes for scopes of an operator namespace.
func (m *Manager) In(in *facts.OperatorNamespace) func(*scope.Scope) apply.Identity {
	return func(s *scope.Scope) apply.Identity { return m.identity(s, in) }
}

// Identities are those for each scope of a plan, in its order.
func (m *Manager) Identities(p *plan.Plan, in *facts.OperatorNamespace) []apply.Identity {
	out := make([]apply.Identity, len(p.Scopes))
	for i := range p.Scopes {
		out[i] = m.identity(p.Scopes[i].Scope, in)
	}

	return out
}

// Own is the manager itself for a reconcile key.
func (m *Manager) Own(reconcileKey string) apply.Identity {
	if name := m.GrantedAccount(reconcileKey); name != "" {
		return apply.OwnWith(reconcileKey, name)
	}

	return apply.Own()
}

// Orphans is who takes away what is left of scopes of a reconcile key that are gone. Where the manager itself writes nothing,
// nobody does: it is not known any more who wrote them. Neither does one that does not serve the key.
func (m *Manager) Orphans(reconcileKey string) apply.Identity {
	if m.NeedDelegate || !m.Serves(reconcileKey) {
		return apply.Identity{}
	}

	return m.Own(reconcileKey)
}
