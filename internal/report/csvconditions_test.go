package report_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/report"
)

// TestTypesOfCSVConditions: kubectl wait finds the conditions that are no phases, and nothing is taken from those that are.
func TestTypesOfCSVConditions(t *testing.T) {
	t.Parallel()

	condition := func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}

		return out
	}

	for reason, tc := range map[string]struct{ is, want any }{
		"a phase": {condition("phase", "Succeeded", "reason", "x"), condition("phase", "Succeeded", "reason", "x")},
		"what holds everywhere": {
			condition("phase", report.ConditionClusterWide, "reason", report.ReasonBoundInCluster),
			condition("phase", report.ConditionClusterWide, "reason", report.ReasonBoundInCluster,
				"type", report.ConditionClusterWide, "status", "True"),
		},
		"what may": {
			condition("phase", report.ConditionClusterWide, "reason", "x"),
			condition("phase", report.ConditionClusterWide, "reason", "x", "type", report.ConditionClusterWide, "status", "Unknown"),
		},
		"rules without effect": {
			condition("phase", report.ConditionRulesEffective),
			condition("phase", report.ConditionRulesEffective, "type", report.ConditionRulesEffective, "status", "False"),
		},
		"what is no condition": {"x", "x"},
	} {
		csv := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{tc.is}}}}
		report.TypeConditions(csv)

		got, _, _ := unstructured.NestedSlice(csv.Object, "status", "conditions")
		if !reflect.DeepEqual(got, []any{tc.want}) {
			t.Errorf("%s: %v, want %v", reason, got, tc.want)
		}
	}

	for _, object := range []map[string]any{{}, {"status": map[string]any{}}, {"status": "x"}} {
		csv := &unstructured.Unstructured{Object: object}
		if report.TypeConditions(csv); len(csv.Object) > 1 {
			t.Errorf("it has no conditions, and became %v", csv.Object)
		}
	}

	if got := report.CSVConditions(nil); got != nil {
		t.Errorf("nothing is planned, and %v is said", got)
	}
}
