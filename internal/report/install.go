package report

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// CSVStatus sets the status of a ClusterServiceVersion. One that gets further than before in one reconcile has gone through the
// phases between, and its conditions say so. besides are its conditions that are not phases.
func CSVStatus(
	status *olm.ClusterServiceVersionStatus, v install.Verdict, besides []metav1.Condition, now metav1.Time,
) {
	before := slices.Clone(status.Conditions)
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), isBesides)

	setPhase(status, v, now)
	setBesides(status, besides, before, now)
}

func setPhase(status *olm.ClusterServiceVersionStatus, v install.Verdict, now metav1.Time) {
	v.Message = shortened(printable.Text(v.Message), maxMessage)

	if v.Requirements != nil && !equality.Semantic.DeepEqual(status.RequirementStatus, v.Requirements) {
		status.RequirementStatus = v.Requirements
	}

	if status.Phase == v.Phase && status.Reason == v.Reason && status.Message == v.Message {
		return
	}

	csv := &olm.ClusterServiceVersion{Status: *status}

	for _, s := range between(status.Phase, v.Phase) {
		csv.SetPhase(s.Phase, s.Reason, s.Message, &now)
	}

	csv.SetPhase(v.Phase, v.Reason, v.Message, &now)
	*status = csv.Status
}

// between are the phases that lie between two.
func between(from, to olm.ClusterServiceVersionPhase) []install.Verdict {
	way := []install.Verdict{
		{Phase: olm.CSVPhasePending, Reason: olm.CSVReasonRequirementsUnknown, Message: "requirements not yet checked"},
		{
			Phase: olm.CSVPhaseInstallReady, Reason: olm.CSVReasonRequirementsMet,
			Message: "all requirements found, attempting install",
		},
		{
			Phase: olm.CSVPhaseInstalling, Reason: olm.CSVReasonInstallSuccessful,
			Message: "waiting for install components to report healthy",
		},
		{Phase: olm.CSVPhaseSucceeded},
	}
	index := func(phase olm.ClusterServiceVersionPhase) int {
		return slices.IndexFunc(way, func(v install.Verdict) bool { return v.Phase == phase })
	}

	first, last := index(from)+1, index(to)
	if last <= first {
		return nil
	}

	return way[first:last]
}

// Group is what is known of an OperatorGroup after a reconcile.
type Group struct {
	Targets install.Targets
	// Several says that there are other groups in the namespace.
	Several bool
	// Account is the service account that the group names; nil when that does not exist.
	Account *corev1.ObjectReference
	// UserRoles says why the user ClusterRoles could not be made; empty when they were.
	UserRoles string
	// LeftOut says how much of the namespace is more than may be remembered; empty when nothing is.
	LeftOut string
	// Unlisted says why the group does not list what its operators provide; empty when it does.
	Unlisted string
	// Closed says which targets have not let the group's account in; empty when all have.
	Closed string
	// Left says what could not be deleted of operators that are gone; empty when everything was.
	Left string
}

// GroupStatus sets the status of an OperatorGroup. All of it is made in one go, so that nothing is lost in between: OLM drops
// the account whenever the namespaces change.
func GroupStatus(g *operatorsv1.OperatorGroup, from Group, now metav1.Time) {
	s := &g.Status

	if s.LastUpdated == nil || !equality.Semantic.DeepEqual(s.Namespaces, from.Targets.Namespaces) ||
		!equality.Semantic.DeepEqual(s.ServiceAccountRef, from.Account) {
		s.Namespaces, s.ServiceAccountRef, s.LastUpdated = from.Targets.Namespaces, from.Account, &now
	}

	set := func(is bool, condition string, status metav1.ConditionStatus, reason, message string) {
		if !is {
			meta.RemoveStatusCondition(&s.Conditions, condition)

			return
		}

		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: shortened(printable.Text(message), maxMessage),
			ObservedGeneration: g.Generation, LastTransitionTime: now,
		})
	}

	set(from.Several, operatorsv1.MultipleOperatorGroup, metav1.ConditionTrue, operatorsv1.MultipleOperatorGroupsFound,
		"Multiple OperatorGroup found in the same namespace")
	set(g.Spec.ServiceAccountName != "" && from.Account == nil, operatorsv1.OperatorGroupServiceAccount, metav1.ConditionTrue,
		operatorsv1.ServiceAccountNotFound, "ServiceAccount "+g.Spec.ServiceAccountName+" not found")
	if from.Targets.Problem != "" {
		set(true, ConditionTargetsFound, metav1.ConditionFalse, ReasonNoTargets, from.Targets.Problem)
	} else {
		set(from.Closed != "", ConditionTargetsFound, metav1.ConditionFalse, ReasonAuthorizationRequired, from.Closed)
	}

	set(from.UserRoles != "", ConditionUserRoles, metav1.ConditionFalse, ReasonAuthorizationRequired, from.UserRoles)

	set(from.Left != "", ConditionLeftoversRemoved, metav1.ConditionFalse, ReasonAuthorizationRequired,
		"left of ClusterServiceVersions that are gone: "+from.Left)

	over := from.Unlisted
	if from.LeftOut != "" {
		over = "namespace " + g.Namespace + " holds more than may be remembered: the largest objects of it are left out, " +
			from.LeftOut
	}

	set(over != "", ConditionWithinLimits, metav1.ConditionFalse, ReasonLimitExceeded, over)
}
