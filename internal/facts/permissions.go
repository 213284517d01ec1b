package facts

// ClusterPermissions says who may hold more or less by a change of a ClusterRole or ClusterRoleBinding.
type ClusterPermissions struct {
	// Everybody says that it may be anybody, such as Ambit itself, who acts as all others.
	Everybody bool
	// Namespaces are those whose service accounts are bound, or were.
	Namespaces map[string]struct{}
	// Bound says that whoever is bound in a namespace may hold more or less there. Nobody knows all bindings in namespaces.
	Bound bool
	// Freed says that something is gone which may have stood in the way of what is to be written cluster-wide.
	Freed bool
}
