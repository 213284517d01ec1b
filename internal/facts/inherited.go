package facts

import rbacv1 "k8s.io/api/rbac/v1"

// Inherited is a Role or RoleBinding that bears the marks of IBM's operator.
type Inherited struct {
	// Mark is the label namespace-scope-configmap, by which that operator finds it again.
	Mark string
	// Labelled says that the other labels are those that the operator gives; List is the ConfigMap that they name.
	Labelled bool
	List     string
	// RoleRef and Subjects are those of a binding.
	RoleRef  rbacv1.RoleRef
	Subjects []rbacv1.Subject
	Version  uint64
}
