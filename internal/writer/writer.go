// Package writer says who writes, for every kind. The manager asks it before it writes, and the command line before it says what
// the manager would do, so that the two cannot differ. It is pure.
package writer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Manager is the part of a manager's configuration that decides who writes.
type Manager struct {
	// User is the name of the user that it runs as; empty when it is not known.
	User string
	// DefaultDelegate is the service account of scopes that name none; NeedDelegate refuses those that have neither.
	DefaultDelegate string
	NeedDelegate    bool
	// Namespaces are the namespaces that it serves; empty means all.
	Namespaces []string
	// Installs says that it serves OperatorGroups there, and so may act as the accounts that they name.
	Installs bool
}

// IsConfined says whether the manager has rights in single namespaces alone, and may read nothing cluster-wide.
func (m *Manager) IsConfined() bool { return len(m.Namespaces) > 0 }

// WritesEverywhere says whether the manager itself may write, wherever a scope has it write.
func (m *Manager) WritesEverywhere() bool { return !m.NeedDelegate && !m.IsConfined() }

// Here is a scope as this manager serves it, made from what its resource says.
func (m *Manager) Here(s scope.Scope) scope.Scope {
	if s.Delegate == "" {
		s.Delegate, s.DelegateByDefault = m.DefaultDelegate, m.DefaultDelegate != ""
	}

	if m.IsConfined() {
		return compile.Namespaced(s)
	}

	return s
}

// OwnAccount is the service account of an operator namespace that the manager runs as; empty when it is not of that operator
// namespace.
func (m *Manager) OwnAccount(operatorNamespace string) string {
	return scope.AccountIn(operatorNamespace, m.User)
}

// GrantedAccount is the service account of an operator namespace as which the manager acts in members; empty where it acts as
// itself.
func (m *Manager) GrantedAccount(operatorNamespace string) string {
	return scope.GrantedAccount(m.User, m.Namespaces, operatorNamespace)
}

// AccountOf is the service account of an operator namespace that the manager runs as, or acts as in members.
func (m *Manager) AccountOf(operatorNamespace string) string {
	return cmp.Or(m.OwnAccount(operatorNamespace), m.GrantedAccount(operatorNamespace))
}

// Serves says whether the manager serves what is in a namespace.
func (m *Manager) Serves(namespace string) bool {
	return !m.IsConfined() || slices.Contains(m.Namespaces, namespace)
}

// ServesOnly says what the manager serves, about a scope that it does not.
func (m *Manager) ServesOnly(s *scope.Scope) string {
	only := "this Ambit serves scopes in the namespaces " + strings.Join(m.Namespaces, ", ") + " only"
	if s.Explicit() {
		return only + ", and a " + s.Owner.Kind + " has no namespace"
	}

	return only
}

// Own is the manager itself for scopes of an operator namespace. In members it may be a service account of that namespace, to
// which their owners granted: what they granted for another operator namespace is of no use to it.
func (m *Manager) Own(operatorNamespace string) Identity {
	if name := m.GrantedAccount(operatorNamespace); name != "" {
		return Identity{own: true, inMembers: scope.AccountUser(operatorNamespace, name)}
	}

	return Own()
}

// Of says who writes for a scope, given what its operator namespace holds. What has no namespace names no account.
func (m *Manager) Of(s *scope.Scope, in *facts.OperatorNamespace) Identity {
	operatorNamespace := s.Key.Namespace
	isOwn := s.Delegate != "" && m.AccountOf(operatorNamespace) == s.Delegate

	switch {
	case s.Installed():
		return nobody("the OperatorGroup of its namespace says who writes what is installed")
	case !m.Serves(operatorNamespace):
		return nobody(m.ServesOnly(s))
	case s.Explicit():
		return m.ofExplicit()
	case s.IsUnknown():
		return nobody(s.Problem)
	case s.Delegate == "" && m.NeedDelegate:
		return nobody("the scope names no service account, and this Ambit writes only as one that a scope names; " +
			grant.ToName(s.Owner))
	case s.Delegate == "":
		return m.Own(operatorNamespace)
	case isOwn && s.Manual && !s.Deleting() && !m.IsConfined():
		// All that a manual scope may use is what owners granted. Where nothing but members is served, Ambit holds no more in them;
		// elsewhere it reads nearly everything, and could pass that on.
		return nobody(fmt.Sprintf("spec.manualManagement lets nothing be used but what the owners of namespaces granted, and "+
			"service account %s/%s is Ambit's own, which may do more; %s", operatorNamespace, s.Delegate, toNameAnother(s)))
	case isOwn:
		return m.Own(operatorNamespace)
	case m.mayNotBeNamed(s):
		return nobody(fmt.Sprintf("this Ambit writes for scopes with what was granted to its own account; leave "+
			"spec.serviceAccountName, which is %s, out", s.Delegate))
	}

	return m.ofDelegate(s, in)
}

// toNameAnother says what to do about a scope that names an account which will not do.
func toNameAnother(s *scope.Scope) string {
	if grant.IsLegacy(s.Owner) {
		return grant.ToNameAsPresent
	}

	return "name another one in spec.serviceAccountName"
}

// ofDelegate is the account that a scope names. One that is gone and made again is somebody else's. What it was granted is taken
// back even so: rights do not ask whether their account exists, and a namespace on its way out loses its accounts before its
// scopes.
func (m *Manager) ofDelegate(s *scope.Scope, in *facts.OperatorNamespace) Identity {
	if _, exists := in.Accounts[s.Delegate]; !exists && !s.Deleting() && !in.Terminating {
		return nobody(missingAccount(s, m.IsConfined()))
	}

	return ServiceAccount(s.Key.Namespace, s.Delegate)
}

// In says who writes for scopes of an operator namespace.
func (m *Manager) In(in *facts.OperatorNamespace) func(*scope.Scope) Identity {
	return func(s *scope.Scope) Identity { return m.Of(s, in) }
}

// Identities are those for each scope of a plan, in its order.
func (m *Manager) Identities(p *plan.Plan, in *facts.OperatorNamespace) []Identity {
	return collect.Map(p.Scopes, func(s plan.ScopePlan) Identity { return m.Of(s.Scope, in) })
}

// Orphans is who takes away what is left of scopes of a reconcile key that are gone. Where the manager itself writes nothing,
// nobody does: it is no longer known who wrote that. A manager that does not serve the key takes nothing away either.
func (m *Manager) Orphans(reconcileKey scope.Key) Identity {
	if m.NeedDelegate || !m.Serves(reconcileKey.Namespace) {
		return Identity{}
	}

	return m.Own(reconcileKey.Namespace)
}

// mayNotBeNamed says whether a scope names an account that is not its author's to use: where Ambit serves single namespaces no
// policy asks who wrote a scope, and there it may act as the accounts that OperatorGroups name.
func (m *Manager) mayNotBeNamed(s *scope.Scope) bool {
	return m.Installs && m.IsConfined() && !s.DelegateByDefault && !s.Deleting()
}

// ofExplicit says who writes for a scope that has no namespace, and so names no account.
func (m *Manager) ofExplicit() Identity {
	if m.NeedDelegate {
		return nobody("this Ambit writes only as service accounts that scopes name, and a resource that has no " +
			"namespace names none; install the profile cluster to serve it")
	}

	return Own()
}

// NobodyIn says why nobody writes in a member. The reason for the whole scope names one member as an example, which this
// replaces.
func NobodyIn(s *scope.Scope, why, namespace string) string {
	if named := s.Members.Named; len(named) > 0 {
		return strings.Replace(why, grant.CommandFor(named[0], s), grant.CommandFor(namespace, s), 1)
	}

	return why
}

// missingAccount says what to do about an account that does not exist. That of a manual scope is made by the first
// authorization. A confined manager acts as no other account, unless somebody granted it that.
func missingAccount(s *scope.Scope, confined bool) string {
	what := fmt.Sprintf("service account %s/%s does not exist, or is being deleted, so nothing can be written as it; ",
		s.Key.Namespace, s.Delegate)

	switch {
	case confined && !s.Manual && !s.DelegateByDefault:
		return what + "leave spec.serviceAccountName out: this Ambit writes with what was granted to its own account"
	case !s.Manual || s.Delegate != scope.ManualDelegate:
		return what + "create it"
	case len(s.Members.Named) == 0:
		return what + "it is made when a member is authorized: ambit authorize NAMESPACE --to " + s.Key.Namespace
	default:
		return what + "it is made when a member is authorized: " + grant.CommandFor(s.Members.Named[0], s)
	}
}
