package plan_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// TestSelectorsOfCSVs: a deployment whose selector would not match its pods with the label is left alone, whichever way the
// selector says so. The API server would take no such Deployment, so the operator would get no update any more.
func TestSelectorsOfCSVs(t *testing.T) {
	t.Parallel()

	const key, projected = "intent", "projected"

	about := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: operator, Values: values},
		}}
	}

	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		pods     labels.Set
		says     string
	}{
		"nothing": {nil, nil, ""},
		"a label": {
			&metav1.LabelSelector{MatchLabels: labels.Set{key: "a"}}, labels.Set{key: "a"}, "its selector asks for intent=a",
		},
		"values":      {about(metav1.LabelSelectorOpIn, "a", "b"), labels.Set{key: "a"}, "does not match pods with intent=projected"},
		"a value":     {about(metav1.LabelSelectorOpNotIn, projected), nil, "does not match pods with intent=projected"},
		"none":        {about(metav1.LabelSelectorOpDoesNotExist), nil, "does not match pods with intent=projected"},
		"any":         {about(metav1.LabelSelectorOpExists), labels.Set{key: "a"}, ""},
		"it is one":   {about(metav1.LabelSelectorOpIn, "a", projected), labels.Set{key: "a"}, ""},
		"never":       {about(metav1.LabelSelectorOpIn, "a"), nil, ""},
		"unreadable":  {about("Sometimes"), nil, "its selector cannot be read"},
		"other label": {&metav1.LabelSelector{MatchLabels: labels.Set{"app": "a"}}, labels.Set{"app": "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			scopes, f := limitedTo("")
			scopes[0].Labels = labels.Set{key: projected}
			f.OperatorNamespace.CSVs[0].Deployments = []facts.CSVDeployment{{
				Name: "d", Selector: tc.selector, Template: facts.Template{Labels: tc.pods, Account: "op"},
				PodSpec: facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
			}}

			p := plan.New(scopes, f)
			problems := strings.Join(p.Scopes[0].CSVs.Problems, "; ")
			injected := false

			for i := range p.Injections {
				injected = injected || p.Injections[i].Workload.Kind == plan.CSVKind
			}

			if tc.says == "" && problems != "" || !strings.Contains(problems, tc.says) || injected != (tc.says == "") {
				t.Errorf("injected: %t, problems: %q, want %q", injected, problems, tc.says)
			}
		})
	}
}
