package report_test

import (
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// planStatus is a status of an InstallPlan in which the condition Installed is False for a reason, if there is one.
func planStatus(
	phase olm.InstallPlanPhase, reason olm.InstallPlanConditionReason, message string,
) *olm.InstallPlanStatus {
	s := &olm.InstallPlanStatus{Phase: phase}
	if reason != "" {
		s.SetCondition(olm.InstallPlanCondition{
			Type: olm.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		})
	}

	return s
}

func TestInstallPlanEvents(t *testing.T) {
	t.Parallel()

	const (
		complete, failed = olm.InstallPlanPhaseComplete, olm.InstallPlanPhaseFailed
		refused          = olm.InstallPlanReasonComponentFailed
	)

	superseded := catalog.Superseded(&olm.InstallPlanStatus{}, "another", metav1.Now())
	known := []string{
		report.EventInstallPlanComplete, report.EventInstallCheckFailed, report.EventInstallComponentFailed, report.EventSuperseded,
	}

	for _, tc := range []struct {
		reason        string
		before, after *olm.InstallPlanStatus
		want          string
	}{
		{"it is complete", planStatus("", "", ""), planStatus(complete, "", ""), "Normal InstallPlanComplete installed a, b"},
		{"it stays so", planStatus(complete, "", ""), planStatus(complete, "", ""), ""},
		{"it fails", planStatus("", "", ""), planStatus(failed, refused, "no"), "Warning InstallComponentFailed no"},
		{"in the same way", planStatus(failed, refused, "no"), planStatus(failed, refused, "no"), ""},
		{"in another", planStatus(failed, refused, "no"), planStatus(failed, refused, "not"), "Warning InstallComponentFailed not"},
		{
			"it waits for a group", planStatus("", "", ""),
			planStatus(olm.InstallPlanPhaseInstalling, olm.InstallPlanReasonInstallCheckFailed, "none"), "Warning InstallCheckFailed none",
		},
		{"it is over", planStatus("", "", ""), &superseded, "Warning Superseded " + superseded.Message},
		{"nothing is written yet", planStatus("", "", ""), planStatus(olm.InstallPlanPhaseRequiresApproval, "", ""), ""},
	} {
		got := ""

		if e := report.InstallPlanEvent([]string{"a", "b"}, tc.before, tc.after); e != nil {
			got = e.Type() + " " + e.Reason + " " + e.Message

			if !slices.Contains(known, e.Reason) {
				t.Errorf("%s: %s is no reason of an event", tc.reason, e.Reason)
			}
		}

		if got != tc.want {
			t.Errorf("%s: it is told %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestInstallPlansCount: what comes down to no scope is in the metrics, too.
func TestInstallPlansCount(t *testing.T) {
	t.Parallel()

	registry := prometheus.NewRegistry()
	report.NewMetrics(registry).Applied(&plan.Plan{Key: scope.Catalogs.In("ops")}, &apply.Outcome{Objects: []apply.WriteOutcome{
		{Result: apply.Created}, {Result: apply.Unchanged}, {Result: apply.Failed, Err: apply.ErrNameClash},
	}}, 0, metav1.Now().Time)

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]float64{}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}

	for name, want := range map[string]float64{
		"ambit_writes_total": 1, "ambit_failures_total": 1, "ambit_change_to_effect_seconds": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, not %v", name, got[name], want)
		}
	}
}
