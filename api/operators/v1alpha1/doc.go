// Package v1alpha1 holds the kinds ScopeTemplate and ScopeInstance of the group operators.coreos.com.
//
// They are those of the Oria operator's enhancement proposal, so that resources written by it apply unchanged. Fields that
// only Ambit has say so.
//
// +kubebuilder:object:generate=true
// +groupName=operators.coreos.com
package v1alpha1
