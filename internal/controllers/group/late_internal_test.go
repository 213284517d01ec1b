package group

import (
	"errors"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestOnlyLate: a permission whose write was not answered yet is late; one that could not be written, or that anything else came
// before, is not.
func TestOnlyLate(t *testing.T) {
	t.Parallel()

	late, failed := apply.ErrUnanswered, errors.New("etcd has no leader")

	for reason, tc := range map[string]struct {
		delay string
		errs  []error
		want  bool
	}{
		"nothing is in the way":             {"", nil, false},
		"an answer is late":                 {"", []error{late}, true},
		"several are":                       {"", []error{late, late}, true},
		"something failed":                  {"", []error{failed}, false},
		"one is late, and one failed":       {"", []error{late, failed}, false},
		"one failed, and one is late":       {"", []error{failed, late}, false},
		"it could not be asked what it may": {"no answer", []error{late}, false},
	} {
		csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "op"}}
		p := &state{members: []member{{csv: csv, delay: tc.delay, unready: map[string]install.Readiness{}}}}
		planned := &plan.Plan{Scopes: []plan.ScopePlan{{Scope: &scope.Scope{Owner: compile.CSVOwner("ops", "op")}}}}
		out := &apply.Outcome{Scopes: make([]apply.ScopeOutcome, 1)}

		for _, err := range tc.errs {
			out.Scopes[0].Failures = append(out.Scopes[0].Failures, apply.Failure{Change: &plan.Change{}, Err: err})
		}

		p.took(t.Context(), planned, out)

		if m := &p.members[0]; m.late != tc.want || (m.delay != "") != (tc.delay != "" || len(tc.errs) > 0) {
			t.Errorf("%s: late %t, delayed for %q", reason, m.late, m.delay)
		}
	}
}
