// Package v1alpha1 holds the legacy NamespaceScope API, of the group namespacescope.ibm.com. It has its own field names and
// projects every service account of its namespace unless it names some.
//
// +kubebuilder:object:generate=true
// +groupName=namespacescope.ibm.com
package v1alpha1
