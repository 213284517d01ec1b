package grant

import (
	"fmt"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Command is the command line that grants, in a namespace, what a scope needs there. The namespace may be the scope's own.
// account is the service account that gets the grant; empty means the one that authorize finds by itself. It names the group,
// because who grants may not know whether a scope of the other one has the same name.
func Command(namespace string, owner scope.Owner, account string) string {
	return commandFor("authorize", namespace, owner.Namespace, owner.Group+"/"+owner.Name) + accountFlag(account)
}

func accountFlag(account string) string {
	if account == "" {
		return ""
	}

	return " --service-account " + printable.Word(account)
}

// LeavingCommandFor is CommandFor for a namespace that is no member, or no longer one: the scope needs the grant to remove what
// it projected there, and must not gain a member by it.
func LeavingCommandFor(namespace string, s *scope.Scope) string {
	return CommandFor(namespace, s) + " --grant-only"
}

// InstallCommand is the command line that lets the operators which are installed in a namespace into another one.
func InstallCommand(namespace, to string) string {
	return installsLine("authorize", namespace, to)
}

// RevokeInstallsCommand is the command line that takes back what InstallCommand grants.
func RevokeInstallsCommand(namespace, to string) string {
	return installsLine("revoke", namespace, to)
}

func installsLine(verb, namespace, to string) string {
	return fmt.Sprintf("ambit %s %s --to %s --installs", verb, printable.Word(namespace), printable.Word(to))
}

// CommandFor is the command line for a scope as a manager serves it. Whoever runs it need not know how the manager runs, so an
// account that is the manager's choice is named.
func CommandFor(namespace string, s *scope.Scope) string {
	name, account := Short(s.Owner), ""

	if s.IsTwin {
		name = s.Owner.Group + "/" + s.Owner.Name
	}

	if s.DelegateByDefault {
		account = s.Delegate
	}

	return commandFor("authorize", namespace, s.Owner.Namespace, name) + accountFlag(account)
}

// RevokeCommand is the command line that takes back what Command grants.
func RevokeCommand(namespace string, owner scope.Owner) string {
	return commandFor("revoke", namespace, owner.Namespace, owner.Group+"/"+owner.Name)
}

func commandFor(verb, namespace, to, name string) string {
	return fmt.Sprintf("ambit %s %s --to %s --scope %s", verb, printable.Word(namespace), printable.Word(to), printable.Word(name))
}

// IsLegacy says whether a scope is one of the legacy group.
func IsLegacy(owner scope.Owner) bool {
	return owner.Group == namespacescopev1alpha1.GroupVersion.Group
}

// ToNameAsPresent is what to do with a scope of the legacy group, which has no field for a service account, to name one.
const ToNameAsPresent = "have ambit import -f make the scope one of operator.ibm.com, and set spec.serviceAccountName there"

// ToName says what to do about a scope that names no service account.
func ToName(owner scope.Owner) string {
	if IsLegacy(owner) {
		return "set spec.manualManagement to true, or " + ToNameAsPresent
	}

	return "set spec.serviceAccountName to an account of namespace " + owner.Namespace
}

// Short is how --scope names a scope within its namespace: by its name, and by its group too when that is the legacy one.
func Short(owner scope.Owner) string {
	if IsLegacy(owner) {
		return owner.Group + "/" + owner.Name
	}

	return owner.Name
}

// Title names a scope for users.
func Title(owner scope.Owner) string {
	title := fmt.Sprintf("%s %s/%s", owner.Kind, owner.Namespace, owner.Name)
	if IsLegacy(owner) {
		title += " of " + owner.Group
	}

	return title
}
