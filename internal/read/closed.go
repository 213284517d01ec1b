package read

import (
	"errors"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// noAccess is what is known of a namespace that cannot be read. For the others it is Ambit that may not act as who would read it:
// the service account to which owners of members grant, or the one that installs.
const (
	noAccess    = "Ambit may not read Roles and RoleBindings there, or there is no such namespace"
	mayNotActAs = "Ambit may not act as the service account to which is granted: in the scope's namespace it lacks something of " +
		"what Role ambit-namespaced of config/rbac/namespaced has"
	mayNotInstallAs = "Ambit may not act as the service account that the OperatorGroup names: an administrator names it in Role " +
		"ambit-namespaced-installs of the group's namespace"
)

// refusesEntry tells a closed access from an API server that cannot be asked now.
func refusesEntry(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// whyClosed tells a namespace that did not let anybody in from an account that Ambit may not act as. Of which resource the API
// server says that depends on which of its ways to act as somebody it tried first, but not that it is about impersonation
// (impersonation/mode.go in k8s.io/apiserver).
func (d *access) whyClosed(err error) string {
	status, is := errors.AsType[*apierrors.StatusError](err)

	switch {
	case !is || !strings.Contains(status.ErrStatus.Message, " cannot impersonate"):
		return noAccess
	case d.reconcileKey.Family == scope.Installs:
		return mayNotInstallAs
	default:
		return mayNotActAs
	}
}

// withoutClosed takes out what is in namespaces that are closed to an operator namespace: another one may see it.
func withoutClosed[T any](found map[string]T, namespaces map[string]facts.Namespace) {
	maps.DeleteFunc(found, func(name string, _ T) bool {
		ns, known := namespaces[name]

		return !known || ns.Closed != ""
	})
}
