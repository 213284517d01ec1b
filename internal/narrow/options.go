package narrow

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Form is the kind of scope that is written.
type Form string

// The forms.
const (
	AsScope    Form = "scope"
	AsTemplate Form = "template"
)

// Options say what is wanted.
type Options struct {
	// Members and MemberLabels say where the operators shall work, besides their own namespace.
	Members      []string
	MemberLabels map[string]string
	As           Form
	Keep         []reach.Keep
	// Accounts are those to narrow; empty for all.
	Accounts []Account
	// Namespace is that of objects that name none.
	Namespace string
	// Reads is what the user says of how operators read their namespaces.
	Reads []Reading
	// Fence refuses writes outside of the members; nil for none.
	Fence *Fence
	Kinds *reach.Kinds
	// Roles knows ClusterRoles that are not in the input; nil for one that is not known. ClusterRoles are all of the cluster, and
	// false says that they cannot be read.
	Roles        func(name string) *rbacv1.ClusterRole
	ClusterRoles func() ([]rbacv1.ClusterRole, bool)
	// AccountThere says whether the cluster has an account, and whether that is known.
	AccountThere func(Account) (there, known bool)
	// RoleBindings are those of the cluster, and false says that not all can be read. RoleIn knows Roles that are not in the input;
	// nil for one that is not known.
	RoleBindings func() ([]rbacv1.RoleBinding, bool)
	// Everywhere are the ClusterRoleBindings of the cluster, as bindings without a namespace, and Scopes its NamespaceScopes. False
	// says that they cannot be read.
	Everywhere func() ([]rbacv1.RoleBinding, bool)
	Scopes     func() ([]scope.Scope, bool)
	RoleIn     func(namespace, name string) *rbacv1.Role
	// Policies are the admission policies of the cluster, and false says that they cannot be read.
	Policies func() ([]admissionv1.ValidatingAdmissionPolicy, bool)
	// Fences are the admission policies of the cluster and their bindings, as manifests.
	Fences func() *Stream
	// Namespaces are those of the cluster; nil where nobody knows.
	Namespaces Count
}

// Count holds the namespaces of a cluster, and whether the labels of members select them.
type Count map[string]bool

// without is how many are neither selected nor among some names.
func (c Count) without(names []string) int {
	n := 0

	for name, selected := range c {
		if !selected && !slices.Contains(names, name) {
			n++
		}
	}

	return n
}
