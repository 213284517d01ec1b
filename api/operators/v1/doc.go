// Package v1 holds the kind OperatorGroup of the group operators.coreos.com.
//
// It is OLM's, with one difference: a selector keeps what was written, so that the shorthand form survives. The other versions
// of the kind, v1alpha2 and v1alpha1, have the same fields. Its CustomResourceDefinition is made from OLM's by hack/olmcrds and
// not from these types.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
// +groupName=operators.coreos.com
package v1
