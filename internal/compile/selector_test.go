package compile_test

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/compile"
)

func TestSelector(t *testing.T) {
	t.Parallel()

	prod := labels.Set{"cool.io/prod": "true", "team": "a"}

	for name, tc := range map[string]struct {
		reason  string
		raw     string
		err     error
		matches bool
	}{
		"standard":    {"matchLabels is the Kubernetes form", `{"matchLabels":{"cool.io/prod":"true"}}`, nil, true},
		"expressions": {"so is matchExpressions", `{"matchExpressions":[{"key":"team","operator":"In","values":["a"]}]}`, nil, true},
		"both": {
			"matchLabels and matchExpressions belong together",
			`{"matchLabels":{"team":"a"},"matchExpressions":[{"key":"x","operator":"DoesNotExist"}]}`, nil, true,
		},
		"shorthand":  {"plain labels mean matchLabels", `{"cool.io/prod":"true"}`, nil, true},
		"all labels": {"every plain label must match", `{"cool.io/prod":"true","team":"b"}`, nil, false},
		"mixed": {
			"two forms at once are ambiguous",
			`{"matchLabels":{"team":"a"},"cool.io/prod":"true"}`, compile.ErrSelectorMixed, false,
		},
		"empty":     {"nothing said is nothing selected", `{}`, compile.ErrSelectorEmpty, false},
		"hollow":    {"an empty matchLabels says nothing either", `{"matchLabels":{}}`, compile.ErrSelectorEmpty, false},
		"null":      {"null says nothing", `null`, compile.ErrSelectorEmpty, false},
		"boolean":   {"YAML's true is no label value", `{"cool.io/prod":true}`, compile.ErrSelectorUnreadable, false},
		"nested":    {"a label has no parts", `{"cool.io/prod":{"a":"b"}}`, compile.ErrSelectorUnreadable, false},
		"bad key":   {"this is no label key", `{"not a key":"x"}`, compile.ErrSelectorUnreadable, false},
		"bad value": {"this is no label value", `{"matchLabels":{"team":"-"}}`, compile.ErrSelectorUnreadable, false},
		"bad op": {
			"there is no such operator",
			`{"matchExpressions":[{"key":"team","operator":"Is"}]}`, compile.ErrSelectorUnreadable, false,
		},
		"list":       {"a list is no selector", `[]`, compile.ErrSelectorUnreadable, false},
		"wrong type": {"matchLabels is a map", `{"matchLabels":["a"]}`, compile.ErrSelectorUnreadable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			selector, err := compile.Selector([]byte(tc.raw))
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s: got error %v, want %v", tc.reason, err, tc.err)
			}

			if err == nil && selector.Matches(prod) != tc.matches {
				t.Errorf("%s: matches %v, want %v", tc.reason, !tc.matches, tc.matches)
			}
		})
	}
}

// FuzzSelector holds that no input panics, and that none selects everything.
func FuzzSelector(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"a":"b"}`, `{"matchLabels":{"a":"b"}}`, `{"matchExpressions":[]}`, `[`, `{"":""}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		selector, err := compile.Selector(raw)
		if err == nil && selector.Empty() {
			t.Errorf("%q selects everything", raw)
		}

		if err == nil && !json.Valid(raw) {
			t.Errorf("%q is no JSON and was accepted", raw)
		}
	})
}
