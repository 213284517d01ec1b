package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// AnnotationAllowClusterWide with the value "true" on a ScopeInstance lets it go from some namespaces to the whole cluster.
const AnnotationAllowClusterWide = "ambit.dev/allow-cluster-wide"

// ScopeInstanceSpec says where the ClusterRoles of a template are bound.
type ScopeInstanceSpec struct {
	// scopeTemplateName names the ScopeTemplate. One that does not exist is reported, and served once it does.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ScopeTemplateName string `json:"scopeTemplateName"`

	// namespaces lists the namespaces to bind in, by name. Optional. With no namespaces and no namespaceSelector, the
	// ClusterRoles are bound in the whole cluster; to get there from some namespaces, an instance needs the annotation
	// ambit.dev/allow-cluster-wide: "true". A name may be listed twice and counts once. A namespace that does not exist, or
	// is being deleted, is reported, and served once it exists.
	//
	// Valid: cp4i. Invalid: CP4I, team/a, *, "".
	//
	// +optional
	// +nullable
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector adds the namespaces whose labels match, and follows the labels as they change. Optional. Namespaces
	// named kube-*, openshift-* and Ambit's own are never selected; they have to be named. Either matchLabels and
	// matchExpressions, or plain labels as a shorthand for matchLabels. A selector that matches nothing, is empty, or mixes
	// the two forms binds nothing, and status says so.
	//
	// +optional
	// +nullable
	NamespaceSelector *operatorv1.NamespaceSelector `json:"namespaceSelector,omitempty"`
}

// Reach is how far an instance reaches.
type Reach string

// The reaches.
const (
	ReachNamespaces Reach = "Namespaces"
	ReachCluster    Reach = "Cluster"
)

// ScopeInstanceStatus says what became of an instance.
type ScopeInstanceStatus struct {
	// conditions of the instance. Scoped says whether everything is bound as it should be, with the reasons
	// ScopingSuccessful, ScopingFailed and ScopeTemplateNotFound. RulesEffective names rules that have no effect where they
	// are bound.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// reach is Namespaces or Cluster. Only Ambit has it.
	//
	// +optional
	Reach Reach `json:"reach,omitempty"`

	// boundNamespaces counts the namespaces in which everything is bound. Only Ambit has it.
	//
	// +optional
	BoundNamespaces int32 `json:"boundNamespaces,omitempty"`

	// failedNamespaces are the namespaces that are not fully served, the first 50 by name; the condition Scoped has their
	// number. Only Ambit has it.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	FailedNamespaces []operatorv1.FailedMember `json:"failedNamespaces,omitempty"`

	// observedGeneration is the metadata.generation that this status describes. Only Ambit has it.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ScopeInstance says where the ClusterRoles of a ScopeTemplate are bound: in some namespaces, or in the whole cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=ambit
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.scopeTemplateName`
// +kubebuilder:printcolumn:name="Reach",type=string,JSONPath=`.status.reach`
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.boundNamespaces`
// +kubebuilder:printcolumn:name="Scoped",type=string,JSONPath=`.status.conditions[?(@.type=="Scoped")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Scoped")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Scoped")].message`
type ScopeInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	//
	// +required
	Spec ScopeInstanceSpec `json:"spec"`
	// status is the observed state. Ambit writes it.
	//
	// +optional
	Status ScopeInstanceStatus `json:"status,omitempty"`
}

// ScopeInstanceList is a list of ScopeInstances.
//
// +kubebuilder:object:root=true
type ScopeInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ScopeInstance `json:"items"`
}
