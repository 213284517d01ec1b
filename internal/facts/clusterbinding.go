package facts

import rbacv1 "k8s.io/api/rbac/v1"

// ClusterBinding is a ClusterRoleBinding that means somebody whom scopes are about.
type ClusterBinding struct {
	Name string
	// Role is the ClusterRole that it refers to.
	Role string
	// Owner is the scope that Ambit made it for, as Owner.String of package scope; empty for all others.
	Owner string
	// Subjects are those who were asked for. A user that is a service account is one.
	Subjects []rbacv1.Subject
	// Rights are what it gives that would have an effect in a namespace, what matters most first.
	Rights []ClusterRight
}

// ClusterRight is what may be done to a resource in all namespaces.
type ClusterRight struct {
	Verbs    []string
	Resource string
	// Sensitive says that more can be had by it than it says.
	Sensitive bool
}

// ByName ends the resource of a right that is about objects of some names alone.
const ByName = " (by name)"

// ClusterBindings are those of the accounts that facts are about.
type ClusterBindings struct {
	// Known says that they could be read.
	Known bool
	// Giving are those that give something in namespaces, sorted by name; More is how many others nobody looked at.
	Giving []ClusterBinding
	More   int
}
