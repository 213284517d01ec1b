package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// NamespaceScopeSpec says where a set of operators watches, and which service accounts may work there.
type NamespaceScopeSpec struct {
	// namespaceMembers lists the member namespaces by name. The scope's own namespace is always a member, listed or
	// not. Optional. A name may be listed twice and counts once.
	//
	// Valid: cp4i. Invalid: CP4I, team/a, *, "".
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	NamespaceMembers []string `json:"namespaceMembers,omitempty"`

	// projected-serviceaccounts lists the service accounts of the scope's namespace whose permissions are projected.
	// Optional. Without it, or when it is empty, all service accounts of the namespace are projected.
	//
	// Valid: my-operator. Invalid: ns/my-operator, My-Operator.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ProjectedServiceAccounts []string `json:"projected-serviceaccounts,omitempty"`

	// configmap-name names the ConfigMap, in the scope's namespace, whose key "namespaces" holds the watch list. Optional,
	// default namespace-scope, also for "".
	//
	// Valid: namespace-scope. Invalid: My_Map, kube-root-ca.crt.
	//
	// +optional
	// +kubebuilder:default=namespace-scope
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +kubebuilder:validation:XValidation:rule="self != 'kube-root-ca.crt' && self != 'openshift-service-ca.crt'",message="this ConfigMap is written by another controller; choose another name"
	ConfigmapName string `json:"configmap-name,omitempty"`

	// restartLabels are the labels of the workloads that restart when the watch list changes and they read the ConfigMap.
	// Optional, default intent=projected; empty means the default, never every workload.
	//
	// Valid: {intent: projected}. Invalid: {"not a label": x}, {intent: "-"}.
	//
	// +optional
	// +kubebuilder:default={intent: projected}
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be a label key, such as intent or example.com/intent"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",message="each value must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit"
	RestartLabels map[string]operatorv1.LabelValue `json:"restartLabels,omitempty"`

	// manualManagement limits Ambit to the rights that owners of namespaces granted with "ambit authorize" or
	// authorize-namespace.sh: this scope is written as the service account ambit of its namespace. In the profile namespaced,
	// that is Ambit itself. Optional, default false.
	//
	// +optional
	ManualManagement bool `json:"manualManagement,omitempty"`
}

// NamespaceScope is the legacy form of the NamespaceScope of operator.ibm.com. Ambit serves both.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=namespacescopes,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="ConfigMap",type=string,JSONPath=`.spec.configmap-name`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NamespaceScope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	//
	// +optional
	// +kubebuilder:default={}
	Spec NamespaceScopeSpec `json:"spec,omitempty"`

	// status is the observed state. Ambit writes it.
	//
	// +optional
	Status operatorv1.NamespaceScopeStatus `json:"status,omitempty"`
}

// NamespaceScopeList is a list of NamespaceScopes.
//
// +kubebuilder:object:root=true
type NamespaceScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NamespaceScope `json:"items"`
}
