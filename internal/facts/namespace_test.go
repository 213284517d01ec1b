package facts_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// TestLabelsOfANamespaceAreBounded: of a namespace with very many labels none is remembered, and no selector selects it,
// also none that excludes what it may have.
func TestLabelsOfANamespaceAreBounded(t *testing.T) {
	t.Parallel()

	few, many := map[string]string{"team": "a"}, map[string]string{"team": "a", "excluded": ""}
	for i := range 80 {
		few[fmt.Sprintf("example.com/label-%d", i)] = "value"
	}

	for i := range 150 {
		many[fmt.Sprint("l", i)] = ""
	}

	for selector, want := range map[string][2]bool{
		"team=a": {true, false}, "!excluded": {true, false}, "team!=b": {true, false}, "team notin (b, c)": {true, false},
		"team=b": {}, "excluded": {},
	} {
		by, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}

		usual, over := facts.NamespaceWith(few), facts.NamespaceWith(many)
		if got := [2]bool{usual.IsSelected(by), over.IsSelected(by)}; got != want {
			t.Errorf("%s selects %v, want %v", selector, got, want)
		}

		if len(usual.Labels) != len(few) || over.Labels != nil {
			t.Errorf("remembered are %d and %d labels", len(usual.Labels), len(over.Labels))
		}
	}
}
