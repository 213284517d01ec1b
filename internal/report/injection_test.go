package report_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "b", errors.New("changed"))

// errPolicy is how an admission policy refuses something. Its own words come last.
var errPolicy = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", fmt.Errorf(
	"ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' denied request: ask an administrator", strings.Repeat("p", 200)))

// TestInjected: status says that the operators read the list when all of them do.
func TestInjected(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		outcome apply.WriteOutcome
		status  metav1.ConditionStatus
		reason  string
		message string
		listed  int
	}{
		"Written": {
			apply.WriteOutcome{Result: apply.Configured}, metav1.ConditionTrue, report.ReasonInjected,
			"2 workloads read the watch list", 2,
		},
		"ListNotWritten": {
			apply.WriteOutcome{Result: apply.Unchanged}, metav1.ConditionFalse, report.ReasonWaiting,
			"1 of 2 workloads read the watch list; the others wait until the list is written, " +
				"or until Ambit has read what somebody else just wrote", 1,
		},
		"ChangedMeanwhile": {
			apply.WriteOutcome{Result: apply.Failed, Err: errConflict}, metav1.ConditionFalse,
			report.ReasonWaiting, "1 of 2 workloads read the watch list; the others wait until the list is written, " +
				"or until Ambit has read what somebody else just wrote", 1,
		},
		"Refused": {
			apply.WriteOutcome{Result: apply.Failed, Err: errForbidden}, metav1.ConditionFalse,
			report.ReasonInjectionFailed, "Deployment b: " + errForbidden.Error(), 1,
		},
		"RefusedByAPolicyWithALongName": {
			apply.WriteOutcome{Result: apply.Failed, Err: errPolicy}, metav1.ConditionFalse,
			report.ReasonInjectionFailed, "Deployment b: an admission policy denies it: ask an administrator", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, out := result()
			p.Scopes[0].Scope.InjectWorkloads = &scope.WorkloadInjection{}
			p.Scopes[0].Injectables = []plan.Injectable{{Target: "Deployment a"}, {Target: "Deployment b"}}
			p.Injections = []plan.Injection{{Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "b"}}}
			out.Injections = []apply.WriteOutcome{tc.outcome}

			status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})

			c := meta.FindStatusCondition(status.Conditions, report.ConditionWorkloadsInjected)
			if c == nil || c.Status != tc.status || c.Reason != tc.reason || c.Message != tc.message {
				t.Errorf("got %+v", c)
			}

			if len(status.InjectedWorkloads) != tc.listed {
				t.Errorf("injected are %v", status.InjectedWorkloads)
			}
		})
	}
}

// TestAllThatIsLeftAloneIsNamed: a workload that is refused hides no conflict of another.
func TestAllThatIsLeftAloneIsNamed(t *testing.T) {
	t.Parallel()

	p, out := result()
	p.Scopes[0].Scope.InjectWorkloads = &scope.WorkloadInjection{}
	p.Scopes[0].Injectables = []plan.Injectable{
		{Target: "Deployment a", Refused: "it is Ambit's"}, {Target: "Deployment b", Conflict: "it is set"},
		{Target: "Deployment c", Older: "first"},
	}

	status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})

	c := meta.FindStatusCondition(status.Conditions, report.ConditionWorkloadsInjected)
	if c == nil || c.Reason != report.ReasonInjectionRefused {
		t.Fatalf("got %+v", c)
	}

	for _, name := range []string{"Deployment a: it is Ambit's", "Deployment b: it is set", "Deployment c: it is injected"} {
		if !strings.Contains(c.Message, name) {
			t.Errorf("nothing of %q in %q", name, c.Message)
		}
	}
}

// TestPatchedCSVsReadTheList: a package that is left alone is not among those that read the list.
func TestPatchedCSVsReadTheList(t *testing.T) {
	t.Parallel()

	p, out := result()
	p.Scopes[0].Scope.InjectCSVs = true
	p.Scopes[0].CSVs = plan.CSVs{
		Listed: true, Packages: []string{"a", "b"}, Found: []string{"a", "b"}, Problems: []string{"b.v1: it is set"},
		LeftAlone: []string{"b.v1"}, ByPackage: map[string][]string{"a": {"a.v1"}, "b": {"b.v1"}},
	}

	status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
	if got := strings.Join(status.PatchedCSVList, ","); got != "a" {
		t.Errorf("patchedCSVList is %s", got)
	}

	// Whose webhooks are not limited is said beside whatever else there is to say.
	p.Scopes[0].CSVs.Unlimited = []string{"a.v1"}
	status = report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
	c := meta.FindStatusCondition(status.Conditions, report.ConditionCSVsInjected)

	if c == nil || c.Reason != report.ReasonInjectionFailed || !strings.Contains(c.Message, "b.v1: it is set; webhooks stay") ||
		!strings.HasSuffix(c.Message, "those of a.v1") {
		t.Errorf("got %+v", c)
	}
}
