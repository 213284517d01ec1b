package report_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestEventsOfMoreThanTheStatusNames holds that each namespace that finishes is told of when it begins, and when its time is
// over, although the status names the first fifty alone; and that one which the status comes to name later did not begin then.
func TestEventsOfMoreThanTheStatusNames(t *testing.T) {
	t.Parallel()

	began := time.Now()
	leaving := func(from, to int, over bool) []plan.Finishing {
		var out []plan.Finishing
		for i := from; i < to; i++ {
			out = append(out, plan.Finishing{Namespace: fmt.Sprintf("n%02d", i), Since: began, Until: began.Add(time.Minute), Over: over})
		}

		return out
	}

	for _, tc := range []struct {
		reason string
		// before are those that finished in the plan before, and finishing and over those of this one.
		before, finishing, over []plan.Finishing
		want                    []string
	}{
		{
			"all leave at once", nil, leaving(0, 60, false), nil,
			[]string{"NamespaceFinishing permissions stay for a while, until nothing waits for a finalizer: " +
				"n00, n01, n02, n03, n04, n05, n06, n07 and 52 more"},
		},
		{"nothing changes", leaving(0, 60, false), leaving(0, 60, false), nil, nil},
		{"the first are done, and the status names others instead", leaving(0, 60, false), leaving(8, 60, false), nil, nil},
		{
			"the last of those that it does not name is not done", leaving(0, 60, false), leaving(0, 59, false), leaving(59, 60, true),
			[]string{"NamespaceUnfinished the time is over, although something still waits for a finalizer: n59"},
		},
		{
			"none is done", leaving(0, 60, false), nil, leaving(0, 60, true),
			[]string{"NamespaceUnfinished the time is over, although something still waits for a finalizer: " +
				"n00, n01, n02, n03, n04, n05, n06, n07 and 52 more"},
		},
		{
			"another one begins that the status does not name", leaving(0, 60, false),
			append(leaving(0, 60, false), plan.Finishing{Namespace: "n60", Since: began, Until: began.Add(time.Minute), Began: true}), nil,
			[]string{"NamespaceFinishing permissions stay for a while, until nothing waits for a finalizer: n60"},
		},
		{"it was over before it began", nil, nil, leaving(0, 60, true), nil},
	} {
		out := &apply.Outcome{Scopes: make([]apply.ScopeOutcome, 1)}
		planOf := func(finishing, over []plan.Finishing) *plan.Plan {
			return &plan.Plan{Scopes: []plan.ScopePlan{{
				Scope: &scope.Scope{}, Finishing: finishing, Leaves: slices.Concat(finishing, over),
			}}}
		}

		before := report.Status(planOf(tc.before, nil), out, 0, &operatorv1.NamespaceScopeStatus{})
		p := planOf(tc.finishing, tc.over)
		after := report.Status(p, out, 0, &before)

		var got []string
		for _, e := range report.EventsOf(p, out, 0, &before, &after) {
			got = append(got, e.Reason+" "+e.Message)
		}

		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestWhyNothingIsKnown holds that the status says why it could not be checked what waits, once somebody has tried.
func TestWhyNothingIsKnown(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		why, want string
	}{
		{"", "not checked yet what waits"},
		{"the API server is overloaded", "it could not be checked what waits: the API server is overloaded"},
	} {
		if got := report.Waits(&facts.Waiting{Unanswered: tc.why}, false); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
