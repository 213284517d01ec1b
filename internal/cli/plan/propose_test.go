package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/cli/files"
)

// TestObjectsWithoutANameAreNotPlanned: an object that kubectl could not apply is told by where it is and what it lacks.
func TestObjectsWithoutANameAreNotPlanned(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		metadata map[string]any
		want     string
	}{
		"a name":  {map[string]any{"name": "s"}, ""},
		"both":    {map[string]any{"name": "s", "generateName": "s-"}, ""},
		"no name": {map[string]any{"namespace": "ops"}, "f.yaml: a NamespaceScope has no metadata.name; give it one"},
		"to generate": {
			map[string]any{"generateName": "s-"},
			"f.yaml: NamespaceScope s-* has metadata.generateName, by which kubectl applies nothing; give it a metadata.name",
		},
	} {
		d := files.Document{Source: "f.yaml", Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"kind": "NamespaceScope", "metadata": tc.metadata,
		}}}

		got := ""
		if err := mustBeNamed(d); err != nil {
			got = err.Error()
		}

		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
