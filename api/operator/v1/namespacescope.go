package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Defaults of the NamespaceScope API. The API server fills them in; the compiler uses them again for objects that never
// passed through an API server, such as those read from a file.
const (
	// DefaultConfigmapName is the ConfigMap that holds the watch list when spec.configmapName is left out.
	DefaultConfigmapName = "namespace-scope"
	// DefaultRestartLabel and DefaultRestartLabelValue are the label that spec.restartLabels means when it is left
	// out or empty.
	DefaultRestartLabel      = "intent"
	DefaultRestartLabelValue = "projected"
	// DefaultVariable is the variable that the injectors set.
	DefaultVariable = "WATCH_NAMESPACE"
	// Finalizer holds a deleted NamespaceScope until everything that was projected for it is gone. It is the
	// finalizer of IBM's operator, so that a scope can change hands.
	Finalizer = "finalizer.nss.operator.ibm.com"
)

// NamespaceScopeSpec says where a set of operators watches, and which service accounts may work there.
type NamespaceScopeSpec struct {
	// namespaceMembers lists the member namespaces by name. The scope's own namespace is always a member, listed or
	// not. Optional. A name may be listed twice and counts once. A namespace that does not exist, or that is being
	// deleted, is left out, reported in status.failedMembers, and joins by itself once it exists.
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

	// namespaceSelector adds the namespaces whose labels match, and follows the labels as they change. Optional; only
	// Ambit has it. Namespaces named kube-*, openshift-* and Ambit's own are never selected: whoever may label a
	// namespace must not thereby hand out rights in a system namespace. They have to be named in namespaceMembers.
	//
	// Either matchLabels and matchExpressions, or plain labels as a shorthand for matchLabels. An empty selector, or one
	// that mixes the two forms, selects nothing and is reported in the condition NamespacesSelected.
	//
	// +optional
	NamespaceSelector *NamespaceSelector `json:"namespaceSelector,omitempty"`

	// serviceAccountMembers lists further service accounts of the scope's namespace whose permissions are projected,
	// besides those of workloads that carry restartLabels. Optional. One that does not exist is named in the condition
	// AccountsFound and projected once it exists.
	//
	// Valid: my-operator. Invalid: ns/my-operator, My-Operator.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountMembers []string `json:"serviceAccountMembers,omitempty"`

	// configmapName names the ConfigMap, in the scope's namespace, whose key "namespaces" holds the watch list. Optional,
	// default namespace-scope, also for "" as in IBM's operator (setDefaults in namespacescope_controller.go). Scopes of one
	// namespace that name the same ConfigMap share it; it then holds the union of their lists. Other keys of the ConfigMap are
	// left alone.
	//
	// Valid: namespace-scope. Invalid: My_Map. ConfigMaps that another controller rewrites (kube-root-ca.crt,
	// openshift-service-ca.crt) are refused.
	//
	// +optional
	// +kubebuilder:default=namespace-scope
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +kubebuilder:validation:XValidation:rule="self != 'kube-root-ca.crt' && self != 'openshift-service-ca.crt'",message="this ConfigMap is written by another controller; choose another name"
	ConfigmapName string `json:"configmapName,omitempty"`

	// restartLabels are the labels of the operators that belong to this scope. A workload belongs to it when its pod
	// template carries all of them: the permissions of its service account are projected, and it is restarted when the
	// watch list changes and it reads the ConfigMap. Optional, default intent=projected; empty means the default, never
	// every workload.
	//
	// Valid: {intent: projected}. Invalid: {"not a label": x}, {intent: "-"}.
	//
	// +optional
	// +kubebuilder:default={intent: projected}
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be a label key, such as intent or example.com/intent"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",message="each value must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit"
	RestartLabels map[string]LabelValue `json:"restartLabels,omitempty"`

	// manualManagement limits Ambit to the rights that owners of namespaces granted with "ambit authorize" or
	// authorize-namespace.sh. Without serviceAccountName, this scope is written as the service account ambit of its namespace;
	// in the profile namespaced, that is Ambit itself. Optional, default false.
	//
	// +optional
	ManualManagement bool `json:"manualManagement,omitempty"`

	// csvInjector makes operators that OLM installed read their watch list from the ConfigMap. Optional; without it
	// nothing is injected.
	//
	// +optional
	CSVInjector *Injector `json:"csvInjector,omitempty"`

	// workloadInjector makes operators that came without OLM read their watch list from the ConfigMap: the Deployments,
	// StatefulSets and DaemonSets of the scope's namespace whose pod template carries restartLabels. Optional; only Ambit
	// has it; without it nothing is injected.
	//
	// +optional
	WorkloadInjector *WorkloadInjector `json:"workloadInjector,omitempty"`

	// license is accepted for compatibility with IBM's operator. Ambit is free software and ignores it. Optional.
	//
	// +optional
	License *LicenseAcceptance `json:"license,omitempty"`

	// allowSubsetProjection says what happens when a role may not be projected into a member. When false, the scope
	// is not Ready and the member does not enter the watch list until the role exists there. When true, the role is left
	// out, listed in status.unprojectedRoles, and the member enters the list. Every other role and member is served in
	// both cases. Optional, default false.
	//
	// +optional
	AllowSubsetProjection bool `json:"allowSubsetProjection,omitempty"`

	// serviceAccountName names a service account of the scope's own namespace, the delegate. Everything that this scope
	// causes is written as that account, so the API server refuses whatever the account may not do itself. Optional;
	// only Ambit has it. In the profile namespaced Ambit refuses it.
	//
	// Valid: scope-writer. Invalid: other-namespace/scope-writer.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Unreadable says which part could not be read, and why; empty where nothing is wrong. It is not part of the resource.
	Unreadable string `json:"-"`
}

// LabelValue is the value of a label. It may be empty.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// Injector turns an injection on or off.
type Injector struct {
	// enable turns the injection on. Optional, default true when the object around it is given, as in IBM's CRD.
	//
	// +optional
	// +kubebuilder:default=true
	Enable *bool `json:"enable,omitempty"`
}

// WorkloadInjector says how the watch list gets into the operators that carry restartLabels. It is written by server-side
// apply, so that Helm or whatever installed them keeps owning everything else of them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.variable) || size(self.variable) > 0 || has(self.mountPath)",message="without variable and mountPath there is nothing to inject; set one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.arguments) || size(self.arguments) == 0 || (has(self.containers) && size(self.containers) > 0)",message="arguments are for one program; name its container in containers"
type WorkloadInjector struct {
	// enable turns the injection on. Optional, default true when the object around it is given.
	//
	// +optional
	// +kubebuilder:default=true
	Enable *bool `json:"enable,omitempty"`

	// variable is the environment variable that gets the watch list. Optional, default WATCH_NAMESPACE; empty means none,
	// for operators that read the file of mountPath.
	//
	// Valid: WATCH_NAMESPACE, WATCH_NAMESPACES. Invalid: "WATCH NAMESPACE", 1ST.
	//
	// +optional
	// +kubebuilder:default=WATCH_NAMESPACE
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([A-Za-z_.-][A-Za-z0-9_.-]*)?$`
	Variable *string `json:"variable,omitempty"`

	// arguments are added at the end of the arguments of each container in containers. Kubernetes replaces $(NAME) by the
	// variable of that name. Optional. The list of a container's arguments has one owner: where somebody else wrote it,
	// that is a conflict, and conflicts says what happens.
	//
	// Valid: --watch-namespaces=$(WATCH_NAMESPACE).
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Arguments []string `json:"arguments,omitempty"`

	// mountPath is a folder in which the watch list appears as the file "namespaces". Optional. A folder at which something
	// else is mounted is a conflict and is never replaced.
	//
	// Valid: /etc/ambit. Invalid: etc/ambit, /, "/a:b".
	//
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/[^:]*[^:/]$`
	MountPath string `json:"mountPath,omitempty"`

	// containers are the containers to inject into, by name. Optional; without it all, init containers too. A workload that
	// has none of them is left alone.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Containers []string `json:"containers,omitempty"`

	// conflicts says what happens when somebody else set the variable or the arguments already, to something else. Report
	// leaves the whole workload alone and names it in the condition WorkloadsInjected. Replace overwrites the value, records
	// it, and restores it when the injector is turned off. Optional, default Report.
	//
	// +optional
	// +kubebuilder:default=Report
	// +kubebuilder:validation:Enum=Report;Replace
	Conflicts ConflictPolicy `json:"conflicts,omitempty"`
}

// ConflictPolicy says what happens to a field that somebody else set.
type ConflictPolicy string

// The policies.
const (
	ReportConflicts  ConflictPolicy = "Report"
	ReplaceConflicts ConflictPolicy = "Replace"
)

// LicenseAcceptance is the licence block of IBM's CRD. Ambit stores it and does nothing with it.
type LicenseAcceptance struct {
	// accept says that the licence was accepted. Optional, default false.
	//
	// +optional
	Accept bool `json:"accept,omitempty"`

	// license names the licence that is accepted, where a product has several. Optional.
	//
	// +optional
	License string `json:"license,omitempty"`

	// use is the kind of use that is licensed. Optional.
	//
	// +optional
	Use string `json:"use,omitempty"`

	// key is the licence key of the deployment. Optional.
	//
	// +optional
	Key string `json:"key,omitempty"`
}

// NamespaceScope lets the operators of its namespace work in the member namespaces, and only there: Ambit projects
// the permissions of their service accounts into each member, keeps the watch list in a ConfigMap, and restarts the
// operators when the list changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=namespacescopes,shortName=nss,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="ConfigMap",type=string,JSONPath=`.spec.configmapName`
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
	Status NamespaceScopeStatus `json:"status,omitempty"`
}

// NamespaceScopeList is a list of NamespaceScopes.
//
// +kubebuilder:object:root=true
type NamespaceScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NamespaceScope `json:"items"`
}
