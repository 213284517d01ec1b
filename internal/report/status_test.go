package report_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "r", errors.New("no such role here"))

// result is a plan for one scope with members a and b, and an outcome in which everything went well.
func result() (*plan.Plan, *apply.Outcome) {
	s := &scope.Scope{
		Owner: scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s"},
		Key:   scope.NamespaceScopes.In("ops"), WatchList: "list", Generation: 3,
	}
	p := &plan.Plan{
		Key:    scope.NamespaceScopes.In("ops"),
		Scopes: []plan.ScopePlan{{Scope: s, Members: []string{"a", "b"}, Accounts: []string{"x"}}},
		Lists:  []plan.ListPlan{{Name: "list", Scopes: []int{0}}},
	}
	out := &apply.Outcome{
		Scopes: make([]apply.ScopeOutcome, 1),
		Lists: []apply.ListOutcome{{
			Write:        plan.ListWrite{Action: plan.KeepList, Members: []string{"a", "b", "ops"}},
			WriteOutcome: apply.WriteOutcome{Result: apply.Unchanged},
		}},
	}

	return p, out
}

func failure(namespace, role string, action plan.Action, class apply.Class, err error) apply.Failure {
	c := plan.Change{Action: action, Namespace: namespace, Key: facts.ProjectedKey{Kind: projected.Role, Name: role + "-0123456789"}}
	if action != plan.Delete {
		c.Copy = &plan.Copy{SourceRole: role}
	}

	return apply.Failure{Change: &c, Class: class, Err: fmt.Errorf("create Role %s/%s: %w", namespace, role, err)}
}

func TestReady(t *testing.T) {
	t.Parallel()

	refused := failure("a", "r", plan.Create, apply.Refused, errForbidden)

	for name, tc := range map[string]struct {
		reason string
		change func(*plan.Plan, *apply.Outcome)
		status metav1.ConditionStatus
		want   string
		text   string
	}{
		"well": {"everything is there", func(*plan.Plan, *apply.Outcome) {}, "True", report.ReasonReconciled, "3 members"},
		"alone": {
			"the operator namespace is the only member",
			func(p *plan.Plan, o *apply.Outcome) {
				p.Scopes[0].Members, o.Lists[0].Write.Members = nil, []string{"ops"}
			}, "True", report.ReasonReconciled, "1 member is served",
		},
		"missing namespace": {
			"a member that does not exist",
			func(p *plan.Plan, _ *apply.Outcome) { p.Scopes[0].Absent = []plan.Absent{{Namespace: "gone"}} },
			"False", report.ReasonMembersFailed, "1 of 4 members are not fully served: gone (NamespaceNotFound)",
		},
		"refused": {
			"a role that may not be projected",
			func(_ *plan.Plan, o *apply.Outcome) { o.Scopes[0].Failures = []apply.Failure{refused} },
			"False", report.ReasonMembersFailed, "a (RoleNotProjected)",
		},
		"refused and allowed": {
			"a subset is what the scope asked for",
			func(p *plan.Plan, o *apply.Outcome) {
				p.Scopes[0].Scope.AllowSubset = true
				o.Scopes[0].Failures = []apply.Failure{refused}
			}, "True", report.ReasonSubsetProjected, "3 members are served; 1 role could not be projected",
		},
		"not for now": {
			"a subset does not cover what may pass by itself",
			func(p *plan.Plan, o *apply.Outcome) {
				p.Scopes[0].Scope.AllowSubset = true
				o.Scopes[0].Failures = []apply.Failure{failure("a", "r", plan.Create, apply.Transient, errors.New("timeout 17 s"))}
			}, "False", report.ReasonMembersFailed, "a (TemporaryError)",
		},
		"conflict": {
			"a conflict is settled by the next plan, and nobody needs to know",
			func(_ *plan.Plan, o *apply.Outcome) {
				o.Scopes[0].Failures = []apply.Failure{failure("a", "r", plan.Update, apply.Conflict, errors.New("changed"))}
			}, "True", report.ReasonReconciled, "",
		},
		"clash": {
			"an object of somebody else's stands in the way",
			func(_ *plan.Plan, o *apply.Outcome) {
				o.Scopes[0].Failures = []apply.Failure{failure("a", "r", plan.Create, apply.Refused, apply.ErrNameClash)}
			}, "False", report.ReasonMembersFailed, "a (NameClash)",
		},
		"not revoked": {
			"a permission that should be gone is not",
			func(p *plan.Plan, o *apply.Outcome) {
				p.Scopes[0].Scope.AllowSubset = true
				o.Scopes[0].Failures = []apply.Failure{failure("z", "r", plan.Delete, apply.Refused, errForbidden)}
			}, "False", report.ReasonMembersFailed, "z (RoleNotRevoked)",
		},
		"not revoked where the account lacks the right": {
			"a namespace that left counts among those that it is one of",
			func(_ *plan.Plan, o *apply.Outcome) {
				o.Scopes[0].Failures = []apply.Failure{failure("z", "r", plan.Delete, apply.Refused, &apply.MissingError{Namespace: "z"})}
			}, "False", report.ReasonAuthorizationRequired, "1 of 4 members are not authorized: z",
		},
		"bad selector": {
			"a part of the spec that cannot be used",
			func(p *plan.Plan, _ *apply.Outcome) {
				p.Scopes[0].Selection = plan.Selection{Asked: true, Problem: "it is empty"}
			},
			"False", report.ReasonInvalidSpec, "it is empty; named members are served",
		},
		"bad selector, and a member that failed": {
			"not all that are named are served",
			func(p *plan.Plan, o *apply.Outcome) {
				p.Scopes[0].Selection = plan.Selection{Asked: true, Problem: "it is empty"}
				o.Scopes[0].Failures = []apply.Failure{failure("a", "r", plan.Create, apply.Refused, apply.ErrNameClash)}
			},
			"False", report.ReasonInvalidSpec, "it is empty; named members are served, but for a (NameClash)",
		},
		"immutable": {
			"a list that cannot be written",
			func(_ *plan.Plan, o *apply.Outcome) { o.Lists[0].Write.Action = plan.BlockedList },
			"False", report.ReasonConfigMapConflict, "delete it, or have the scope name another one",
		},
		"list forbidden": {
			"an identity without the right to write the list",
			func(_ *plan.Plan, o *apply.Outcome) { o.Lists[0].Err = errForbidden },
			"False", report.ReasonAuthorizationRequired, "forbidden",
		},
		"list failed": {
			"a list that could not be written this time",
			func(_ *plan.Plan, o *apply.Outcome) { o.Lists[0].Err = errors.New("timeout 17 s") },
			"False", report.ReasonWatchListFailed, "tried again",
		},
		"list late": {
			"a list whose write was not answered yet",
			func(_ *plan.Plan, o *apply.Outcome) { o.Lists[0].Err = fmt.Errorf("writing: %w", apply.ErrUnanswered) },
			"False", report.ReasonWatchListPending, "is being written",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, out := result()
			tc.change(p, out)

			status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
			ready := meta.FindStatusCondition(status.Conditions, report.ConditionReady)

			if ready.Status != tc.status || ready.Reason != tc.want || !strings.Contains(ready.Message, tc.text) {
				t.Errorf("%s: got %s %s %q", tc.reason, ready.Status, ready.Reason, ready.Message)
			}

			if strings.Contains(ready.Message, "17 s") {
				t.Errorf("the message changes while the problem does not: %q", ready.Message)
			}

			if again := report.Status(p, out, 0, &status); !reflect.DeepEqual(again, status) {
				t.Errorf("the same result gives another status:\n%+v\n%+v", status, again)
			}
		})
	}
}

// TestNumbersAreCountedInWords: a number of one has a noun and a verb in the singular.
func TestNumbersAreCountedInWords(t *testing.T) {
	t.Parallel()

	for n, want := range map[int][2]string{
		0: {"0 service accounts are projected", "spec.namespaceSelector matches no namespace"},
		1: {"1 service account is projected", "spec.namespaceSelector matches 1 namespace"},
		2: {"2 service accounts are projected", "spec.namespaceSelector matches 2 namespaces"},
	} {
		p, out := result()
		p.Scopes[0].Accounts = []string{"x", "y"}[:n]
		p.Scopes[0].Selection = plan.Selection{Asked: true, Matched: n}

		status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
		for i, condition := range []string{report.ConditionAccountsFound, report.ConditionNamespacesSelected} {
			got, _, _ := strings.Cut(meta.FindStatusCondition(status.Conditions, condition).Message, ";")
			if got != want[i] {
				t.Errorf("%s: %q, want %q", condition, got, want[i])
			}
		}
	}
}

func TestStatusIsBounded(t *testing.T) {
	t.Parallel()

	p, out := result()
	for i := range 600 {
		name := fmt.Sprintf("m%03d", 599-i)
		out.Scopes[0].Failures = append(out.Scopes[0].Failures,
			failure(name, "r", plan.Create, apply.Refused, fmt.Errorf("%w %s", errForbidden, strings.Repeat("é", 900))))
	}

	status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
	if n := len(status.FailedMembers); n != 600 {
		t.Errorf("%d failed members are counted", n)
	}

	report.Cut(&status, 1<<20)

	if n := len(status.FailedMembers); n != 50 || status.FailedMembers[0].Namespace != "m000" {
		t.Errorf("%d failed members, the first %v; want the first 50 by name", n, status.FailedMembers[0])
	}

	if n := len(status.UnprojectedRoles); n != 500 || !strings.HasPrefix(status.UnprojectedRoles[0], "m000/r: ") {
		t.Errorf("%d unprojected roles, the first %q", n, status.UnprojectedRoles[0])
	}

	ready := meta.FindStatusCondition(status.Conditions, report.ConditionReady)
	if !strings.Contains(ready.Message, "600 of") || !strings.HasSuffix(ready.Message, "and 592 more") {
		t.Errorf("the condition has the full count: %q", ready.Message)
	}
}

func TestValidatedMembersAreWhatTheConfigMapSays(t *testing.T) {
	t.Parallel()

	p, out := result()
	out.Lists[0] = apply.ListOutcome{Write: plan.ListWrite{Action: plan.BlockedList, Members: []string{"a", "b", "ops"}}}
	p.Lists[0].Live.List = "b,other,ops"

	status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
	if want := []string{"b", "ops"}; !reflect.DeepEqual(status.ValidatedMembers, want) {
		t.Errorf("got %v, want %v: the list could not be written, and other is no member", status.ValidatedMembers, want)
	}
}

// TestNewcomersAreNotValidated: a list that another scope shares names a member in which this one was refused everything from the
// beginning, and not because of this one. A binding whose role does not exist is no refusal.
func TestNewcomersAreNotValidated(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		class    apply.Class
		reported []string
		want     []string
	}{
		"refused":                 {apply.Refused, nil, []string{"a", "ops"}},
		"refused, and was served": {apply.Refused, []string{"b"}, []string{"a", "b", "ops"}},
		"its role does not exist": {apply.Dangling, nil, []string{"a", "b", "ops"}},
	} {
		p, out := result()
		s := &p.Scopes[0]
		s.Bare, s.Scope.Reported = []string{"b"}, tc.reported
		out.Scopes[0].Failures = []apply.Failure{failure("b", "r", plan.Create, tc.class, errForbidden)}

		status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})
		if !reflect.DeepEqual(status.ValidatedMembers, tc.want) {
			t.Errorf("%s: %v, want %v", reason, status.ValidatedMembers, tc.want)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()

	p, out := result()
	p.Restarts = []plan.Restart{
		{List: "list", Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "w"}, At: time.Now(), Scopes: []int{0}},
		{List: "list", Evict: []facts.PodRef{{Name: "p"}}, Scopes: []int{0}},
		{List: "list", Evict: []facts.PodRef{{Name: "q"}}, Scopes: []int{1}},
	}
	out.Restarts = []apply.WriteOutcome{{}, {Err: errForbidden}, {}}

	before := operatorv1.NamespaceScopeStatus{ValidatedMembers: []string{"a", "ops", "z"}}
	after := report.Status(p, out, 0, &before)

	var got []string
	for _, e := range report.EventsOf(p, out, 0, &before, &after) {
		got = append(got, fmt.Sprintf("%s %v %s", e.Reason, e.Warning, e.Message))
	}

	want := []string{
		"NamespaceAdded false added to the watch list: b",
		"NamespaceRemoved false removed from the watch list: z",
		"WorkloadRestarted false restarted, because the watch list in ConfigMap list changed: Deployment w",
	}
	if len(got) != 4 || !reflect.DeepEqual(got[:3], want) || !strings.HasPrefix(got[3], "RestartFailed true") {
		t.Errorf("got %q", got)
	}
}

// TestEventsOfWhatCameLate: what an earlier plan restarted, or injected into, is told when its answer has come, to the scope that
// it was for. The same reader is not told of as one that waits for an answer still.
func TestEventsOfWhatCameLate(t *testing.T) {
	t.Parallel()

	p, out := result()
	again := plan.Restart{List: "list", Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "w"}, Scopes: []int{0}}
	p.Restarts, out.Restarts = []plan.Restart{again}, []apply.WriteOutcome{{Err: apply.ErrUnanswered}}

	others, own := []scope.Owner{{Kind: "NamespaceScope", Namespace: "ops", Name: "other"}}, []scope.Owner{p.Scopes[0].Scope.Owner}
	of := func(name string, quiet bool) *plan.Restart {
		return &plan.Restart{List: "list", Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: name}, Quiet: quiet}
	}
	out.Late = []apply.LateWrite{
		{Scopes: own, Restart: of("w", false)},
		{Scopes: own, Restart: of("marks", true)},
		{Scopes: others, Restart: of("of-another", false)},
		{Scopes: own, Target: "Deployment put"},
		{Scopes: own, Target: "Deployment back", TakenBack: true},
		{Scopes: others, Target: "Deployment of-another"},
	}

	status := report.Status(p, out, 0, &operatorv1.NamespaceScopeStatus{})

	var got []string
	for _, e := range report.EventsOf(p, out, 0, &status, &status) {
		got = append(got, e.Reason+" "+e.Message)
	}

	want := []string{
		"Injected injected into Deployment put",
		"InjectionTakenBack took back what was injected into Deployment back",
		"WorkloadRestarted restarted, because the watch list in ConfigMap list changed: Deployment w",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestListThatFailedIsNotPending: an API server that never answers lets a list fail after a while, and be written again. The
// status does not change each time.
func TestListThatFailedIsNotPending(t *testing.T) {
	t.Parallel()

	p, out := result()
	status := operatorv1.NamespaceScopeStatus{}

	for _, err := range []error{errors.New("timeout"), apply.ErrUnanswered, errors.New("timeout")} {
		out.Lists[0].Err = err
		status = report.Status(p, out, 0, &status)

		if got := meta.FindStatusCondition(status.Conditions, report.ConditionReady); got.Reason != report.ReasonWatchListFailed {
			t.Errorf("after %v: %s", err, got.Reason)
		}
	}
}
