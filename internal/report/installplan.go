package report

import (
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// InstallPlanEvent returns the event about an InstallPlan whose status is written: that it is complete, or why it is not, if that
// is news; nil otherwise.
func InstallPlanEvent(installs []string, before, after *olm.InstallPlanStatus) *Event {
	was, is := before.GetCondition(olm.InstallPlanInstalled), after.GetCondition(olm.InstallPlanInstalled)

	switch {
	case after.Phase == olm.InstallPlanPhaseComplete && before.Phase != after.Phase:
		return &Event{Reason: EventInstallPlanComplete, Action: "Install", Message: "installed " + strings.Join(installs, ", ")}
	case is.Status == corev1.ConditionFalse && (was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message):
		return &Event{Warning: true, Reason: string(is.Reason), Action: "Install", Message: is.Message}
	default:
		return nil
	}
}
