// Package v1 holds the NamespaceScope API of the group operator.ibm.com.
//
// The group, the kind and the fields down to LicenseAcceptance are those of IBM's namespace-scope operator, so that
// resources written for it apply unchanged. Fields that only Ambit has say so.
//
// +kubebuilder:object:generate=true
// +groupName=operator.ibm.com
package v1
