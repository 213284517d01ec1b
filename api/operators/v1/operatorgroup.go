package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// OperatorGroup says where the operators of its namespace work, and with whose rights they are installed. Every
// ClusterServiceVersion of the namespace is a member of the group. There may be one group in a namespace.
//
// +kubebuilder:object:root=true
type OperatorGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is asked for. Optional: a group without one reaches all namespaces.
	//
	// +optional
	Spec OperatorGroupSpec `json:"spec,omitempty"`

	// status says what has become of it.
	//
	// +optional
	Status OperatorGroupStatus `json:"status,omitempty"`
}

// OperatorGroupSpec says where the members of a group work, and as whom they are installed.
type OperatorGroupSpec struct {
	// selector chooses the target namespaces by their labels, and follows the labels as they change. Optional. Ignored when
	// targetNamespaces lists any. Either matchLabels and matchExpressions, or plain labels as a shorthand for matchLabels. One
	// that matches nothing, or mixes the two forms, selects nothing.
	//
	// +optional
	Selector *operatorv1.NamespaceSelector `json:"selector,omitempty"`

	// targetNamespaces lists the namespaces that the members work in, by name. Optional. The group's own namespace is one of
	// them only if it is listed.
	//
	// Valid: cp4i. Invalid: "", which would be all namespaces to an operator.
	//
	// +optional
	// +listType=set
	TargetNamespaces []string `json:"targetNamespaces,omitempty"`

	// serviceAccountName names a service account of the group's own namespace. Optional. Everything that an installation writes
	// is written as that account, so that no operator gets more than the account has. Without it, Ambit writes it with its own
	// rights, where the profile lets it.
	//
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// staticProvidedAPIs keeps the annotation olm.providedAPIs as it is: members that provide other APIs are refused. Optional,
	// false by default.
	//
	// +optional
	StaticProvidedAPIs bool `json:"staticProvidedAPIs,omitempty"`

	// upgradeStrategy says from which phases a member may be replaced: Default, from Succeeded only, or
	// TechPreviewUnsafeFailForward, from Failed as well. Optional, Default by default.
	//
	// +optional
	UpgradeStrategy UpgradeStrategy `json:"upgradeStrategy,omitempty"`
}

// UpgradeStrategy says from which phases a member may be replaced.
type UpgradeStrategy string

const (
	// UpgradeDefault replaces a member that has succeeded.
	UpgradeDefault UpgradeStrategy = "Default"
	// UpgradeFailForward replaces a member that has failed, too.
	UpgradeFailForward UpgradeStrategy = "TechPreviewUnsafeFailForward"
)

// OperatorGroupStatus is what has become of a group.
type OperatorGroupStatus struct {
	// namespaces are the target namespaces. All namespaces are one entry, the empty string; a selector that matches nothing
	// leaves the list empty.
	//
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`

	// serviceAccountRef refers to the service account that the spec names, once it exists.
	//
	// +optional
	ServiceAccountRef *corev1.ObjectReference `json:"serviceAccountRef,omitempty"`

	// lastUpdated is when namespaces or serviceAccountRef last changed.
	//
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// conditions are MultipleOperatorGroup, true while the namespace holds another group; OperatorGroupServiceAccount, true
	// while the service account does not exist; and TargetNamespacesFound, UserRolesProvided and WithinLimits, which are Ambit's
	// and are false while something is missing or too large.
	//
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OperatorGroupList is a list of OperatorGroups.
//
// +kubebuilder:object:root=true
type OperatorGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OperatorGroup `json:"items"`
}
