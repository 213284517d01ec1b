package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NamespaceScopeStatus is what Ambit found and did. Every list is sorted.
type NamespaceScopeStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// validatedMembers are the members that the watch list names because of this scope: all of them, or, where an object has no
	// room for all, the first of them by name.
	//
	// +optional
	// +listType=atomic
	ValidatedMembers []string `json:"validatedMembers,omitempty"`

	// validatedMembersTotal is how many members the watch list names because of this scope, where validatedMembers does not have
	// all.
	//
	// +optional
	ValidatedMembersTotal int64 `json:"validatedMembersTotal,omitempty"`

	// failedMembers are the members that are not fully served, the first 50 of them by name, or fewer where an object has no room
	// for more. The condition Ready has the full count.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=50
	FailedMembers []FailedMember `json:"failedMembers,omitempty"`

	// finishingMembers are namespaces that are no longer members, or are being deleted, and that keep their permissions and their
	// place in the watch list because custom resources there wait for a finalizer of an operator: the first 50 of them by name. The
	// condition MembersFinished has the full count.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=50
	FinishingMembers []FinishingMember `json:"finishingMembers,omitempty"`

	// finishingSince is since when operators finish in the namespaces for which finishingMembers has no room.
	//
	// +optional
	FinishingSince *metav1.Time `json:"finishingSince,omitempty"`

	// unprojectedRoles are the roles that could not be projected, as "<member>/<source role>: reason", the first 500 of
	// them.
	//
	// +optional
	// +listType=atomic
	UnprojectedRoles []string `json:"unprojectedRoles,omitempty"`

	// managedCSVList are the packages that csvInjector covers.
	//
	// +optional
	// +listType=atomic
	ManagedCSVList []string `json:"managedCSVList,omitempty"`

	// patchedCSVList are the packages whose ClusterServiceVersion was injected.
	//
	// +optional
	// +listType=atomic
	PatchedCSVList []string `json:"patchedCSVList,omitempty"`

	// managedWebhookList are the webhook configurations that csvInjector covers.
	//
	// +optional
	// +listType=atomic
	ManagedWebhookList []string `json:"managedWebhookList,omitempty"`

	// patchedWebhookList are those of managedWebhookList that are limited to the members.
	//
	// +optional
	// +listType=atomic
	PatchedWebhookList []string `json:"patchedWebhookList,omitempty"`

	// injectedWorkloads are the workloads that workloadInjector injected into, as "<kind> <name>", the first 500 of them.
	//
	// +optional
	// +listType=atomic
	InjectedWorkloads []string `json:"injectedWorkloads,omitempty"`

	// conditions are Ready, which sums up the scope; AccountsFound, NamespacesSelected and RolesFound, which name what is
	// missing; CSVsInjected and WorkloadsInjected, which say what became of an injection; and others while they apply.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedMember is a member that is not fully served.
type FailedMember struct {
	// namespace is the member's name.
	Namespace string `json:"namespace"`

	// reason is one word, such as NamespaceNotFound, NamespaceTerminating or RoleNotProjected.
	Reason string `json:"reason"`

	// message says what happened and what to do next. It does not change while the problem does not.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// FinishingMember is a namespace in which operators finish their work.
type FinishingMember struct {
	// namespace is its name.
	Namespace string `json:"namespace"`

	// since is when the namespace left. It keeps its permissions for a grace period after that at most.
	Since metav1.Time `json:"since"`

	// message names what waits there.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
