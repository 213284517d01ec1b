package catalog

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDefinitionsWakeWhoWritesThem: an InstallPlan that is to write no such definition cannot have waited for it, and
// asks the API server for nothing.
func TestDefinitionsWakeWhoWritesThem(t *testing.T) {
	t.Parallel()

	step := func(name any) any { return map[string]any{"resource": map[string]any{"name": name}} }

	for reason, tc := range map[string]struct {
		status any
		want   bool
	}{
		"nothing is known of one without a status": {nil, true},
		"nor of one whose status holds no steps":   {map[string]any{"phase": "Installing"}, true},
		"it is among the steps":                    {map[string]any{"plan": []any{step("tea.v1"), step("things.example.com")}}, true},
		"it is not":                                {map[string]any{"plan": []any{step("others.example.com"), step("tea.v1")}}, false},
		"a step may be anything":                   {map[string]any{"plan": []any{nil, "x", step(5)}}, false},
	} {
		ip := &unstructured.Unstructured{Object: map[string]any{"status": tc.status}}
		if got := writes(ip, "things.example.com"); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}
