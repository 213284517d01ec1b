package writer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Group is the one OperatorGroup of a namespace, as far as it decides who writes. What its status says decides nothing: others
// may write that.
type Group struct {
	Name string
	// Account is the service account that it names, and Exists says whether that is there.
	Account string
	Exists  bool
}

// Installer is who writes what is installed in a namespace.
type Installer struct {
	// Writes is who installs.
	Writes Identity
	// Deletes is who deletes a ClusterServiceVersion that was replaced, and the Deployments of one in conflict. Nobody was asked to
	// let the account of a group delete anything.
	Deletes Identity
	// Removes is who takes permissions away. Rights are given to the name of an account, so the name takes away what it gave
	// although the account is gone, or the group that named it: otherwise whoever deletes one of the two keeps what was given.
	Removes Identity
}

// OfGroup says who writes what is installed in a namespace by its group; g is nil where the namespace has none, or several. last
// is the account by which something was last installed there, as far as that is known.
func (m *Manager) OfGroup(namespace string, g *Group, last string) Installer {
	out := Installer{Writes: m.installs(namespace, g), Deletes: Own(), Removes: Own()}
	if !m.needsAccount() {
		return out
	}

	out.Deletes, out.Removes = out.Writes, Identity{}
	if m.MayInstallAs(namespace, last) {
		out.Removes = ServiceAccount(namespace, last)
	}

	return out
}

// needsAccount says whether a group has to name an account. Where Ambit has rights in single namespaces alone, whoever may write
// a ClusterServiceVersion would have the use of them, and no policy asks who that is.
func (m *Manager) needsAccount() bool { return !m.WritesEverywhere() }

// MayInstallAs says whether a group may name an account. Where no policy asks who writes a group, nobody may name Ambit's own.
func (m *Manager) MayInstallAs(namespace, account string) bool {
	return account != "" && !slices.Contains(m.OwnAccounts(namespace), account)
}

// OwnAccounts are the service accounts of a namespace that no group may name: where Ambit has rights in single namespaces alone,
// those that it runs as, or may act as in members, where owners granted to them.
func (m *Manager) OwnAccounts(namespace string) []string {
	if !m.IsConfined() {
		return nil
	}

	out := []string{scope.ManualDelegate}
	if own := m.OwnAccount(namespace); own != "" {
		out = append(out, own)
	}

	return out
}

func (m *Manager) installs(namespace string, g *Group) Identity {
	switch {
	case !m.Serves(namespace):
		return nobody("this Ambit serves other namespaces only: " + strings.Join(m.Namespaces, ", "))
	case g == nil:
		return nobody("the namespace has no operator group, or more than one")
	case g.Account == "" && m.needsAccount():
		return nobody("the operator group names no service account, and this Ambit writes only as one that a group names; " +
			"set spec.serviceAccountName to an account of namespace " + namespace)
	case g.Account == "":
		return Own()
	case !m.MayInstallAs(namespace, g.Account):
		return nobody("service account " + g.Account + " is Ambit's own, and whoever may write what is installed could use it; " +
			"set spec.serviceAccountName to another account of namespace " + namespace)
	case !g.Exists:
		// In OLM's words (pkg/lib/scoped/querier.go).
		return nobody(fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s/%s",
			g.Account, namespace, g.Name))
	default:
		return ServiceAccount(namespace, g.Account)
	}
}
