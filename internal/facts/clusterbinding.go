package facts

import rbacv1 "k8s.io/api/rbac/v1"

// ClusterBinding is a ClusterRoleBinding that binds somebody whom scopes are about.
type ClusterBinding struct {
	Name string
	// Role is the ClusterRole that it refers to.
	Role string
	// Owner is the scope that Ambit made it for, as Owner.String of package scope; empty for all others.
	Owner string
	// Subjects are those of its subjects that were asked about. A user that is a service account appears as one.
	Subjects []rbacv1.Subject
	// Rights are what it gives that would have an effect in a namespace, the most important first.
	Rights []ClusterRight
}

// ClusterRight is what may be done to a resource in all namespaces.
type ClusterRight struct {
	Verbs    []string
	Resource string
	// Sensitive says that the right can be used to gain more than it grants.
	Sensitive bool
}

// ByName ends the resource of a right that is limited to objects of some names.
const ByName = " (by name)"

// ClusterBindings are those of the accounts that facts are about.
type ClusterBindings struct {
	// Giving are those that give something in namespaces, sorted by name; More counts the others, which nobody looked at.
	Giving []ClusterBinding
	More   int
}
