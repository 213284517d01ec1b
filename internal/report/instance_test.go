package report_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestEffectOfRulesThatAreNotBound: no rule takes effect where nobody serves the instance, or its template is missing, so nothing
// is said of their effect. What was said before goes.
func TestEffectOfRulesThatAreNotBound(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		instance plan.ScopePlan
		outcome  apply.ScopeOutcome
		template int
		want     string
	}{
		"it is served":      {want: "AllEffective"},
		"some mean nothing": {instance: plan.ScopePlan{Ineffective: []string{"list nodes"}}, want: "ClusterScopedRules"},
		"nobody serves it":  {outcome: apply.ScopeOutcome{Nobody: "not in this profile"}},
		"nobody serves such": {
			instance: plan.ScopePlan{Ineffective: []string{"list nodes"}}, outcome: apply.ScopeOutcome{Nobody: "not here"},
		},
		"its template is not there": {template: -1},
	} {
		tc.instance.Scope = &scope.Scope{}
		p := &plan.Plan{Scopes: []plan.ScopePlan{{Scope: &scope.Scope{}}, tc.instance}}
		out := &apply.Outcome{Scopes: []apply.ScopeOutcome{{}, tc.outcome}}
		served := &apply.Outcome{Scopes: make([]apply.ScopeOutcome, 2)}

		before, _ := report.InstanceStatus(p, served, 1, report.Referred{Name: "t"}, &operatorsv1alpha1.ScopeInstanceStatus{})
		after, _ := report.InstanceStatus(p, out, 1, report.Referred{Name: "t", Index: tc.template}, &before)

		got := ""
		if c := meta.FindStatusCondition(after.Conditions, report.ConditionRulesEffective); c != nil {
			got = c.Reason
		}

		if got != tc.want {
			t.Errorf("%s: the reason is %q, want %q", reason, got, tc.want)
		}
	}
}

// TestWhatIsWrongWithAnInstanceAndItsTemplate: neither hides the other.
func TestWhatIsWrongWithAnInstanceAndItsTemplate(t *testing.T) {
	t.Parallel()

	const invalid, fromTemplate = "subject x", "ScopeTemplate t: these subjects get nothing, the others are served: subject x"

	gone := plan.Absent{Namespace: "gone"}
	nothing := plan.Selection{Asked: true}

	for reason, tc := range map[string]struct {
		instance plan.ScopePlan
		invalid  []string
		want     string
	}{
		"the template alone": {plan.ScopePlan{Members: []string{"a"}}, []string{invalid}, fromTemplate},
		"a namespace alone": {
			plan.ScopePlan{Absent: []plan.Absent{gone}}, nil, "1 of 1 namespace is not fully served: gone (NamespaceNotFound)",
		},
		"a namespace, too": {
			plan.ScopePlan{Members: []string{"a"}, Absent: []plan.Absent{gone}}, []string{invalid},
			"1 of 2 namespaces are not fully served: gone (NamespaceNotFound); " + fromTemplate,
		},
		"a selector, too": {
			plan.ScopePlan{Selection: nothing}, []string{invalid},
			"spec.namespaceSelector matches no namespace, so nothing is bound; namespaces join as soon as their labels match; " +
				fromTemplate,
		},
	} {
		tc.instance.Scope = &scope.Scope{}
		p := &plan.Plan{Scopes: []plan.ScopePlan{{Scope: &scope.Scope{}}, tc.instance}}
		out := &apply.Outcome{Scopes: make([]apply.ScopeOutcome, 2)}

		status, _ := report.InstanceStatus(
			p, out, 1, report.Referred{Name: "t", Invalid: tc.invalid}, &operatorsv1alpha1.ScopeInstanceStatus{},
		)

		if c := meta.FindStatusCondition(status.Conditions, report.ConditionScoped); c.Message != tc.want {
			t.Errorf("%s: %s, want %s", reason, c.Message, tc.want)
		}
	}
}
