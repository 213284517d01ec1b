// Package report says what users see: status, events and metrics. It makes all of them from a plan and from what applying it
// did, and from nothing else.
package report

import "github.com/ambit-k8s/ambit/internal/scope"

// Condition types of a NamespaceScope.
const (
	// ConditionReady sums up the scope.
	ConditionReady = "Ready"
	// ConditionAccountsFound names service accounts that do not exist.
	ConditionAccountsFound = "AccountsFound"
	// ConditionNamespacesSelected reports the result of spec.namespaceSelector; it is absent without one.
	ConditionNamespacesSelected = "NamespacesSelected"
	// ConditionRolesFound names bindings whose role does not exist.
	ConditionRolesFound = "RolesFound"
	// ConditionTakenOver is there while something bears the marks of IBM's operator.
	ConditionTakenOver = "TakenOver"
	// ConditionNoForeignBindings is False while bindings of somebody else's refer to what was projected; it is absent otherwise.
	ConditionNoForeignBindings = "NoForeignBindings"
	// ConditionMembersFinished is False while namespaces that left keep their permissions, because something waits there for an
	// operator; it is absent otherwise.
	ConditionMembersFinished = "MembersFinished"
	// ConditionClusterWide is True while accounts of the scope hold in the whole cluster what its members do not limit, and absent
	// otherwise. ScopeInstances and ClusterServiceVersions have it, too.
	ConditionClusterWide = "ClusterWide"
	// ConditionCSVsInjected reports the result of spec.csvInjector, ConditionWorkloadsInjected that of spec.workloadInjector; each
	// is absent without it.
	ConditionCSVsInjected      = scope.ConditionCSVsInjected
	ConditionWorkloadsInjected = "WorkloadsInjected"
)

// Condition types of ScopeTemplates and ScopeInstances. Those of the Oria operator, but for RulesEffective.
const (
	// ConditionTemplated sums up a ScopeTemplate, ConditionScoped a ScopeInstance.
	ConditionTemplated = "Templated"
	ConditionScoped    = "Scoped"
	// ConditionRulesEffective names rules that have no effect in the namespaces in which they are bound. NamespaceScopes and
	// ClusterServiceVersions have it, too, while there are such rules.
	ConditionRulesEffective = "RulesEffective"
)

// Condition types of OperatorGroups, besides those of OLM.
const (
	// ConditionTargetsFound is False when a group asks for target namespaces and has none, or has some into which its account was
	// not let.
	ConditionTargetsFound = "TargetNamespacesFound"
	// ConditionUserRoles is False when the ClusterRoles by which users get access to the provided APIs could not be made.
	ConditionUserRoles = "UserRolesProvided"
	// ConditionLeftoversRemoved is False when something of operators that are gone could not be deleted.
	ConditionLeftoversRemoved = "LeftoversRemoved"
	// ConditionWithinLimits is False when the namespace of a group holds more than may be remembered.
	ConditionWithinLimits = "WithinLimits"
)

// Reasons of conditions.
const (
	// ReasonReconciled: everything is as the scope asks.
	ReasonReconciled = "Reconciled"
	// ReasonSubsetProjected: some roles may not be projected, and the scope allows that.
	ReasonSubsetProjected = "SubsetProjected"
	// ReasonMembersFailed: some members are not fully served.
	ReasonMembersFailed = "MembersFailed"
	// ReasonAuthorizationRequired: Ambit has no authority to write for this scope.
	ReasonAuthorizationRequired = "AuthorizationRequired"
	// ReasonInvalidSpec: the spec cannot be read, so nothing is served; or the selector cannot be used, and the rest is served.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonConfigMapConflict: the ConfigMap is immutable, or the API server refuses the watch list.
	ReasonConfigMapConflict = "ConfigMapConflict"
	// ReasonWatchListFailed: the ConfigMap could not be written this time; it is tried again.
	ReasonWatchListFailed = "WatchListFailed"
	// ReasonWatchListPending: the ConfigMap is being written, and the API server has not answered yet.
	ReasonWatchListPending = "WatchListPending"
	// ReasonLimitExceeded: the operator namespace holds more than may be remembered.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonInjectionFailed: an operator could not be made to read the watch list.
	ReasonInjectionFailed = "InjectionFailed"

	// ReasonInjected, ReasonWaiting, ReasonNothingToInject, ReasonInjectionConflict, ReasonInjectionRefused and ReasonOLMNotFound
	// belong to CSVsInjected and WorkloadsInjected, as does InjectionFailed.
	ReasonInjected          = "Injected"
	ReasonWaiting           = "Waiting"
	ReasonNothingToInject   = "NothingToInject"
	ReasonInjectionConflict = "InjectionConflict"
	ReasonInjectionRefused  = "InjectionRefused"
	ReasonOLMNotFound       = "OLMNotFound"

	// ReasonTakingOver and ReasonLeftAlone belong to TakenOver.
	ReasonTakingOver = "TakingOver"
	ReasonLeftAlone  = "LeftAlone"

	// ReasonBoundByOthers belongs to NoForeignBindings.
	ReasonBoundByOthers = "BoundByOthers"

	// ReasonFinishing belongs to MembersFinished.
	ReasonFinishing = "Finishing"

	// ReasonAllFound and ReasonMissing belong to AccountsFound and RolesFound.
	ReasonAllFound = "AllFound"
	ReasonMissing  = "Missing"

	// ReasonSelected, ReasonNothingSelected and ReasonInvalidSelector belong to NamespacesSelected.
	ReasonSelected        = "Selected"
	ReasonNothingSelected = "NothingSelected"
	ReasonInvalidSelector = "InvalidSelector"

	// ReasonTemplatingSuccessful and ReasonTemplatingFailed belong to Templated.
	ReasonTemplatingSuccessful = "TemplatingSuccessful"
	ReasonTemplatingFailed     = "TemplatingFailed"

	// ReasonScopingSuccessful, ReasonScopingFailed and ReasonScopeTemplateNotFound belong to Scoped.
	ReasonScopingSuccessful     = "ScopingSuccessful"
	ReasonScopingFailed         = "ScopingFailed"
	ReasonScopeTemplateNotFound = "ScopeTemplateNotFound"

	// ReasonAllEffective and ReasonClusterScopedRules belong to RulesEffective.
	ReasonAllEffective       = "AllEffective"
	ReasonClusterScopedRules = "ClusterScopedRules"

	// ReasonBoundInCluster and ReasonTooManyBindings belong to ClusterWide.
	ReasonBoundInCluster  = "BoundInCluster"
	ReasonTooManyBindings = "TooManyBindings"

	// ReasonNoTargets belongs to TargetNamespacesFound.
	ReasonNoTargets = "NoTargetNamespaces"
)

// Reasons of failed members.
const (
	MemberNotFound       = "NamespaceNotFound"
	MemberUnauthorized   = "AuthorizationRequired"
	MemberTerminating    = "NamespaceTerminating"
	MemberNameClash      = "NameClash"
	MemberRefused        = "RoleNotProjected"
	MemberNotRevoked     = "RoleNotRevoked"
	MemberTemporaryError = "TemporaryError"
	MemberHeldBack       = "HeldBack"
)

// Reasons of events.
const (
	EventNamespaceAdded   = "NamespaceAdded"
	EventNamespaceRemoved = "NamespaceRemoved"
	EventRoleNotProjected = "RoleNotProjected"
	// EventNamespaceFinishing is emitted when a namespace that left keeps its permissions, because something waits there, and
	// EventNamespaceUnfinished when it loses them although something still waits.
	EventNamespaceFinishing    = "NamespaceFinishing"
	EventNamespaceUnfinished   = "NamespaceUnfinished"
	EventWorkloadRestarted     = "WorkloadRestarted"
	EventForeignBinding        = "ForeignBinding"
	EventRestartFailed         = "RestartFailed"
	EventAuthorizationRequired = "AuthorizationRequired"
	EventInjected              = "Injected"
	EventTakenBack             = "InjectionTakenBack"
	// EventOrphansLeft is emitted for scopes that are gone, in their namespace and where something is left of them.
	EventOrphansLeft = "OrphansLeft"

	// Those of ScopeTemplates and ScopeInstances. The last three are emitted when a condition begins to have that reason.
	EventClusterRolesCreated   = "ClusterRolesCreated"
	EventClusterRolesDeleted   = "ClusterRolesDeleted"
	EventBound                 = "Bound"
	EventUnbound               = "Unbound"
	EventTemplatingFailed      = "TemplatingFailed"
	EventScopingFailed         = "ScopingFailed"
	EventScopeTemplateNotFound = "ScopeTemplateNotFound"

	// Those of InstallPlans. All but the first are reasons of OLM's condition Installed, and are emitted when that condition says
	// something new.
	EventInstallPlanComplete    = "InstallPlanComplete"
	EventInstallCheckFailed     = "InstallCheckFailed"
	EventInstallComponentFailed = "InstallComponentFailed"
	EventSuperseded             = "Superseded"
)
