package scope

import (
	"strconv"
	"time"
)

// Labels and annotations that Ambit writes, and those of others that it reads.
const (
	// FieldManager is the name under which the API server records what Ambit wrote.
	FieldManager = "ambit"

	// InjectionManager is the name for what is injected into objects of others. It is not FieldManager, because an object
	// that bears that name counts as made by Ambit.
	InjectionManager = "ambit-injector"

	// LabelManagedBy with the value ManagedBy marks every projected object.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "ambit"
	// ManagedByAuthorization is the value of LabelManagedBy on what namespace owners granted with "ambit authorize".
	ManagedByAuthorization = "ambit-authorize"
	// LabelAuthorizationTo names the operator namespace that an authorization is for, AnnotationAuthorizationScope the scope as
	// AuthorizationFor reads it, and AuthorizationPrefix is how the names of authorizations begin.
	LabelAuthorizationTo         = "ambit.dev/authorized-for"
	AnnotationAuthorizationScope = "ambit.dev/authorized-scope"
	AuthorizationPrefix          = "ambit-authorized-from-"
	// LabelScope holds Owner.Hash on every projected object; the manager watches by it.
	LabelScope = "ambit.dev/scope"
	// AnnotationOwner holds Owner.String, AnnotationSource the object that was mirrored, as <Kind>/<namespace>/<name>.
	AnnotationOwner  = "ambit.dev/owner"
	AnnotationSource = "ambit.dev/source"

	// CopyFinalizer keeps copies in a namespace that is being deleted, while operators finish there.
	CopyFinalizer = "ambit.dev/finishing"
	// AnnotationCopy holds what tells a copy from the other copies of its scope in the same namespace.
	AnnotationCopy = "ambit.dev/copy"

	// AnnotationAPI on a user ClusterRole names the definition and the version that it is for. Whoever changes everything else in
	// such a role leaves the API server's record that Ambit wrote this annotation.
	AnnotationAPI = "ambit.dev/api"

	// AnnotationListHash holds ListHash: on the ConfigMap for the list in it, on a pod template for the list that its
	// pods were restarted for.
	AnnotationListHash = "ambit.dev/namespaces-hash"
	// AnnotationListGeneration on the ConfigMap counts the changes of the list: times have whole seconds, and a list may
	// change and change back within one.
	AnnotationListGeneration = "ambit.dev/namespaces-generation"
	// AnnotationListSince on the ConfigMap is the time (RFC 3339) from which the list has had its present value.
	AnnotationListSince = "ambit.dev/namespaces-since"
	// AnnotationCreated on a ConfigMap says that Ambit made it, and so may delete it.
	AnnotationCreated = "ambit.dev/created"
	// AnnotationListBefore on the ConfigMap is the time (RFC 3339) of the change before the latest one.
	AnnotationListBefore = "ambit.dev/namespaces-before"
	// AnnotationRestarted on a workload is the time (RFC 3339) of its last restart; at most one falls into an interval.
	AnnotationRestarted = "ambit.dev/restarted-at"
	// AnnotationRestartWait on a workload is how long the next restart waits after the last one, such as "1m0s".
	AnnotationRestartWait = "ambit.dev/restart-interval"
	// AnnotationRestart with the value RestartDisabled on a workload keeps Ambit from restarting it.
	AnnotationRestart = "ambit.dev/restart"
	RestartDisabled   = "disabled"
	// AnnotationProject with the value ProjectDisabled on a RoleBinding keeps it in the operator's own namespace.
	AnnotationProject = "ambit.dev/project"
	ProjectDisabled   = "disabled"

	// ConditionCSVsInjected in a status says that something may be injected into ClusterServiceVersions, and the result of it. It
	// is there before anything is injected, and until everything is taken back.
	ConditionCSVsInjected = "CSVsInjected"
	// AnnotationInjected on a workload holds a hash of what was injected into it; AnnotationInjectedFor the scope that it was
	// injected for.
	AnnotationInjected    = "ambit.dev/injected"
	AnnotationInjectedFor = "ambit.dev/injected-for"
	// AnnotationInjectedWith on a pod template is the hash of the list that its pods began with when something was injected into it.
	// AnnotationListHash has another owner where the API server keeps account of that.
	AnnotationInjectedWith = "ambit.dev/injected-with"
	// AnnotationReplaced holds, in JSON, what was there before Ambit wrote over it.
	AnnotationReplaced = "ambit.dev/replaced"

	// ListKey is the key of the ConfigMap that holds the watch list.
	ListKey = "namespaces"
)

// ListHash is a stable hash of a watch list, as it stands in the ConfigMap, and of its generation: a list that changed and
// changed back is not the one that a reader was restarted for, because pods may have begun with the list in between.
func ListHash(list string, generation int64) string {
	return Digest(16, "list", list, strconv.FormatInt(generation, 10))
}

// AbsentListHash stands in for ListHash when the list went with its last scope.
func AbsentListHash(deleted time.Time) string {
	return Digest(16, "absent", deleted.UTC().Format(time.RFC3339))
}
