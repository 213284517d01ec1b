package printable_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// TestKeyThatYAMLMerges: a property may have the name by which YAML merges maps. Plain, what is below it would be read as
// properties beside it.
func TestKeyThatYAMLMerges(t *testing.T) {
	t.Parallel()

	value := map[string]any{"properties": map[string]any{"<<": map[string]any{"type": "object"}}}

	for name, write := range map[string]func(any) (string, error){"YAML": printable.YAML, "Blocks": printable.YAMLWithBlocks} {
		text, err := write(value)
		if err != nil {
			t.Fatal(err)
		}

		var got any
		if err := yaml.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, any(value)) {
			t.Errorf("%s: read as %v (%v):\n%s", name, got, err, text)
		}
	}
}
