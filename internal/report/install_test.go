package report_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/report"
)

func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
}

func verdict(phase olm.ClusterServiceVersionPhase, reason olm.ConditionReason) install.Verdict {
	return install.Verdict{Phase: phase, Reason: reason, Message: string(reason)}
}

func phases(s *olm.ClusterServiceVersionStatus) string {
	words := make([]string, 0, len(s.Conditions))
	for _, c := range s.Conditions {
		words = append(words, string(c.Phase))
	}

	return strings.Join(words, " ")
}

// TestCSVStatusPassesThePhasesBetween: a CSV that gets further in one pass has gone through the phases between, and one that
// fails has not.
func TestCSVStatusPassesThePhasesBetween(t *testing.T) {
	t.Parallel()

	const way = "Pending InstallReady Installing "

	succeeded := verdict(olm.CSVPhaseSucceeded, olm.CSVReasonInstallSuccessful)
	failed := verdict(olm.CSVPhaseFailed, olm.CSVReasonNoOperatorGroup)

	for name, tc := range map[string]struct {
		verdicts []install.Verdict
		want     string
	}{
		"AtOnce": {[]install.Verdict{succeeded}, way + "Succeeded"},
		"Waiting": {[]install.Verdict{
			verdict(olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet), verdict(olm.CSVPhaseInstalling, olm.CSVReasonWaiting),
			succeeded,
		}, "Pending InstallReady Installing Succeeded"},
		"Failed": {[]install.Verdict{failed}, "Failed"},
		"Healed": {[]install.Verdict{failed, succeeded}, "Failed " + way + "Succeeded"},
		"Fell":   {[]install.Verdict{succeeded, failed}, way + "Succeeded Failed"},
		"Back": {
			[]install.Verdict{succeeded, verdict(olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet)},
			way + "Succeeded Pending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := &olm.ClusterServiceVersionStatus{}
			for i, v := range tc.verdicts {
				report.CSVStatus(s, v, nil, at(i))
			}

			if got := phases(s); got != tc.want {
				t.Errorf("it went through %s, want %s", got, tc.want)
			}

			last := tc.verdicts[len(tc.verdicts)-1]
			if s.Phase != last.Phase || s.Reason != last.Reason || s.Message != last.Message {
				t.Errorf("it is %s (%s)", s.Phase, s.Reason)
			}
		})
	}
}

// TestCSVStatusRests holds that the same verdict again changes nothing, whenever it comes, and that the history stays bounded.
func TestCSVStatusRests(t *testing.T) {
	t.Parallel()

	verdicts := rapid.Custom(func(t *rapid.T) install.Verdict {
		v := verdict(rapid.SampledFrom([]olm.ClusterServiceVersionPhase{
			olm.CSVPhasePending, olm.CSVPhaseInstallReady, olm.CSVPhaseInstalling, olm.CSVPhaseSucceeded, olm.CSVPhaseFailed,
			olm.CSVPhaseReplacing, olm.CSVPhaseDeleting,
		}).Draw(t, "phase"), rapid.SampledFrom([]olm.ConditionReason{"A", "B"}).Draw(t, "reason"))
		v.Requirements = rapid.SampledFrom([][]olm.RequirementStatus{nil, {{Name: "x"}}, {{Name: "y"}}}).Draw(t, "requirements")

		return v
	})

	rapid.Check(t, func(t *rapid.T) {
		s := &olm.ClusterServiceVersionStatus{}

		for i, v := range rapid.SliceOfN(verdicts, 1, 40).Draw(t, "verdicts") {
			report.CSVStatus(s, v, nil, at(i))

			before := s.DeepCopy()
			report.CSVStatus(s, v, nil, at(1000+i))

			if !reflect.DeepEqual(before, s) {
				t.Fatalf("the same again:\n%+v\n%+v", before, s)
			}

			if s.Phase != v.Phase || s.Reason != v.Reason || len(s.Conditions) > 20 || len(s.Conditions) == 0 {
				t.Fatalf("%s (%s) with %d conditions", s.Phase, s.Reason, len(s.Conditions))
			}

			if last := s.Conditions[len(s.Conditions)-1]; last.Phase != v.Phase || last.Reason != v.Reason {
				t.Fatalf("the history ends with %s (%s)", last.Phase, last.Reason)
			}

			if v.Requirements != nil && !reflect.DeepEqual(s.RequirementStatus, v.Requirements) {
				t.Fatalf("requirements are %+v", s.RequirementStatus)
			}
		}
	})
}

// TestGroupStatusLosesNothing holds that each part of a group's status follows what is known, whatever else changed meanwhile,
// and that conditions of others stay.
func TestGroupStatusLosesNothing(t *testing.T) {
	t.Parallel()

	theirs := metav1.Condition{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "X", LastTransitionTime: at(0)}
	known := rapid.Custom(func(t *rapid.T) report.Group {
		from := report.Group{
			Several:   rapid.Bool().Draw(t, "several"),
			LeftOut:   rapid.SampledFrom([]string{"", "2 Deployments", "3 Deployments"}).Draw(t, "left out"),
			UserRoles: rapid.SampledFrom([]string{"", "no"}).Draw(t, "user roles"),
			Left:      rapid.SampledFrom([]string{"", "a webhook"}).Draw(t, "left"),
			Targets:   install.Targets{Namespaces: rapid.SampledFrom([][]string{nil, {""}, {"a"}, {"a", "b"}}).Draw(t, "targets")},
		}
		if len(from.Targets.Namespaces) == 0 {
			from.Targets.Problem = "none"
		}

		if rapid.Bool().Draw(t, "account") {
			from.Account = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ops", Name: "scoped", UID: "u"}
		}

		return from
	})

	rapid.Check(t, func(t *rapid.T) {
		g := &operatorsv1.OperatorGroup{}
		g.Status.Conditions = []metav1.Condition{theirs}

		for i, from := range rapid.SliceOfN(known, 1, 8).Draw(t, "passes") {
			g.Spec.ServiceAccountName = rapid.SampledFrom([]string{"", "scoped"}).Draw(t, "name")
			if g.Spec.ServiceAccountName == "" {
				from.Account = nil
			}

			report.GroupStatus(g, from, at(i))

			before := g.DeepCopy()
			report.GroupStatus(g, from, at(1000+i))

			if !reflect.DeepEqual(before, g) {
				t.Fatalf("the same again:\n%+v\n%+v", before.Status, g.Status)
			}

			s := &g.Status
			if !slices.Equal(s.Namespaces, from.Targets.Namespaces) || !reflect.DeepEqual(s.ServiceAccountRef, from.Account) ||
				s.LastUpdated == nil {
				t.Fatalf("known is %+v, told is %+v", from, s)
			}

			for condition, is := range map[string]bool{
				"Theirs": true, operatorsv1.MultipleOperatorGroup: from.Several,
				operatorsv1.OperatorGroupServiceAccount: g.Spec.ServiceAccountName != "" && from.Account == nil,
				report.ConditionTargetsFound:            from.Targets.Problem != "", report.ConditionUserRoles: from.UserRoles != "",
				report.ConditionWithinLimits: from.LeftOut != "", report.ConditionLeftoversRemoved: from.Left != "",
			} {
				if told := meta.FindStatusCondition(s.Conditions, condition) != nil; told != is {
					t.Fatalf("known is %+v, and %s is told: %t", from, condition, told)
				}
			}
		}
	})
}

// TestMessagesAreCut: what a message quotes may be as long as an object can be. A status that does not fit beside it could never
// be written.
func TestMessagesAreCut(t *testing.T) {
	t.Parallel()

	const limit = 10 << 10

	long := strings.Repeat("x\n", 1<<20)
	s := &olm.ClusterServiceVersionStatus{}
	report.CSVStatus(s, install.Verdict{Phase: olm.CSVPhaseFailed, Reason: olm.CSVReasonOwnerConflict, Message: long}, nil, at(0))

	if len(s.Message) > limit || !strings.HasPrefix(s.Message, `x\nx`) || !strings.HasSuffix(s.Message, "…") {
		t.Errorf("the message of a ClusterServiceVersion has %d bytes", len(s.Message))
	}

	g := &operatorsv1.OperatorGroup{}
	report.GroupStatus(g, report.Group{UserRoles: long, LeftOut: long, Closed: long}, at(0))

	for _, c := range g.Status.Conditions {
		if len(c.Message) > limit {
			t.Errorf("%s says %d bytes", c.Type, len(c.Message))
		}
	}
}
