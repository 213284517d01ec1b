package v1alpha1

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScopeTemplateSpec says what an operator needs, and who gets it.
type ScopeTemplateSpec struct {
	// clusterRoles are the ClusterRoles that the operator, or the users of its API, need. They exist while some
	// ScopeInstance refers to the template. Two entries may have the same generateName; what distinguishes them is their order
	// among those.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	ClusterRoles []ClusterRoleTemplate `json:"clusterRoles,omitempty"`

	// bindingTemplate has the subjects of every entry of clusterRoles, besides those of the entry itself. Optional.
	//
	// +optional
	BindingTemplate *BindingTemplate `json:"bindingTemplate,omitempty"`
}

// ClusterRoleTemplate is one ClusterRole of a template.
type ClusterRoleTemplate struct {
	// generateName begins the name of the ClusterRole. 16 unpredictable digits follow, so that the name is never that of a
	// ClusterRole which exists already: cluster-admin as a generateName binds no cluster-admin. A ClusterRole keeps its name
	// while it exists; status.clusterRoles has it.
	//
	// Valid: grafana-operator-, fooClusterRole-. Invalid: "", team/role, 50%.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	GenerateName string `json:"generateName"`

	// rules are those of the ClusterRole, taken as they are. Rules about cluster-scoped resources and non-resource URLs take
	// effect only where the instance binds in the whole cluster; the condition RulesEffective of the instance names those
	// that do not.
	//
	// What a ClusterRole would refuse is refused here: a rule without verbs, and one that names neither resources with their
	// apiGroups nor nonResourceURLs, or both.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:XValidation:rule="self.all(r, size(r.verbs) > 0)",message="each rule needs verbs"
	// +kubebuilder:validation:XValidation:rule="self.all(r, (has(r.nonResourceURLs) && size(r.nonResourceURLs) > 0) ? !(has(r.apiGroups) && size(r.apiGroups) > 0) && !(has(r.resources) && size(r.resources) > 0) && !(has(r.resourceNames) && size(r.resourceNames) > 0) : has(r.apiGroups) && size(r.apiGroups) > 0 && has(r.resources) && size(r.resources) > 0)",message="each rule names either apiGroups and resources, or nonResourceURLs"
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`

	// subjects get the ClusterRole wherever an instance binds it. Optional.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Subjects []Subject `json:"subjects,omitempty"`

	// bindingTemplate is another way to write subjects. Optional; the subjects of both are united.
	//
	// +optional
	BindingTemplate *BindingTemplate `json:"bindingTemplate,omitempty"`
}

// BindingTemplate holds subjects.
type BindingTemplate struct {
	// subjects get the ClusterRoles. Optional.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Subjects []Subject `json:"subjects,omitempty"`
}

// Subject is who gets a ClusterRole.
type Subject struct {
	// kind is ServiceAccount, User or Group.
	//
	// +kubebuilder:validation:Enum=ServiceAccount;User;Group
	Kind string `json:"kind"`

	// apiGroup of the kind: empty for a ServiceAccount, rbac.authorization.k8s.io for a User or Group. Optional; it follows
	// from the kind. Another value is an error in status.
	//
	// +optional
	// +nullable
	APIGroup string `json:"apiGroup,omitempty"`

	// name of the service account, user or group.
	//
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// namespace of a service account, which it must have: without one the subject is an error in status and gets nothing,
	// while the others are served. A User or Group has none.
	//
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
}

// ScopeTemplateStatus says what became of a template.
type ScopeTemplateStatus struct {
	// conditions of the template. Templated says whether its ClusterRoles are as they should be, with the reasons
	// TemplatingSuccessful and TemplatingFailed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// clusterRoles are the names of the ClusterRoles that exist for the template, sorted. Only Ambit has it.
	//
	// +optional
	// +listType=atomic
	ClusterRoles []string `json:"clusterRoles,omitempty"`

	// observedGeneration is the metadata.generation that this status describes. Only Ambit has it.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ScopeTemplate says what an operator needs: ClusterRoles, and the subjects that get them. Where they get them is said by
// ScopeInstances.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=ambit
// +kubebuilder:printcolumn:name="Templated",type=string,JSONPath=`.status.conditions[?(@.type=="Templated")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Templated")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Templated")].message`
type ScopeTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	//
	// +optional
	Spec ScopeTemplateSpec `json:"spec,omitempty"`
	// status is the observed state. Ambit writes it.
	//
	// +optional
	Status ScopeTemplateStatus `json:"status,omitempty"`
}

// ScopeTemplateList is a list of ScopeTemplates.
//
// +kubebuilder:object:root=true
type ScopeTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ScopeTemplate `json:"items"`
}

// maxGenerateName is how long a generateName may be.
const maxGenerateName = 200

// GenerateNameOf makes a generateName of a name: without what none may contain, and no longer than one may be.
func GenerateNameOf(name string) string {
	begins := []rune(strings.NewReplacer("/", "-", "%", "-").Replace(name))

	return string(begins[:min(len(begins), maxGenerateName-1)]) + "-"
}
