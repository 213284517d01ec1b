package install_test

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/install"
)

func TestWithRivals(t *testing.T) {
	pot, cup := []string{"Pot.v1.example.com"}, []string{"Cup.v1.example.com"}

	for name, c := range map[string]struct {
		places map[string]*install.Place
		of     []string
		want   []string
	}{
		"nothing is known of it": {of: []string{"one"}, want: []string{"one"}},
		"the same API for the same namespace": {
			places: map[string]*install.Place{"one": {pot, []string{"a"}}, "two": {pot, []string{"b", "a"}}},
			of:     []string{"two"}, want: []string{"one", "two"},
		},
		"the same API for others": {
			places: map[string]*install.Place{"one": {pot, []string{"a"}}, "two": {pot, []string{"b"}}},
			of:     []string{"two"}, want: []string{"two"},
		},
		"another API": {
			places: map[string]*install.Place{"one": {pot, []string{"a"}}, "two": {cup, []string{"a"}}},
			of:     []string{"one"}, want: []string{"one"},
		},
		"one for the other's namespace": {
			places: map[string]*install.Place{"one": {pot, nil}, "two": {pot, []string{"one"}}},
			of:     []string{"one"}, want: []string{"one", "two"},
		},
		"one whose namespace the other is for": {
			places: map[string]*install.Place{"one": {pot, []string{"two"}}, "two": {pot, nil}},
			of:     []string{"one"}, want: []string{"one", "two"},
		},
		"one for all": {
			places: map[string]*install.Place{"one": {pot, nil}, "two": {pot, []string{""}}},
			of:     []string{"one"}, want: []string{"one", "two"},
		},
		"a rival's rival": {
			places: map[string]*install.Place{
				"one": {pot, []string{"a"}}, "two": {slices.Concat(cup, pot), []string{"a", "b"}}, "three": {cup, []string{"b"}},
				"four": {cup, []string{"a"}},
			},
			of: []string{"one"}, want: []string{"four", "one", "three", "two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := install.WithRivals(c.of, c.places); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
