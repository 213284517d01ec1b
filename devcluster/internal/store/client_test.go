package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestKeysOfAKindAreDeletedOneAfterTheOther(t *testing.T) {
	keys := []string{"/registry/example.com/kettles/one/a", "/registry/namespaces/one"}
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("/registry/namespaces/%03d", i), fmt.Sprintf("/registry/kind-%03d/name", i))
	}
	var got []string
	for _, round := range rounds(keys) {
		seen := map[string]bool{}
		for _, key := range round {
			kind := strings.Split(key, "/")[2]
			if seen[kind] {
				t.Errorf("two keys of %s are deleted at once", kind)
			}
			seen[kind] = true
		}
		if len(round) > batch || len(round) == 0 {
			t.Errorf("%d keys are deleted at once", len(round))
		}
		got = append(got, round...)
	}
	if slices.Sort(keys); !slices.Equal(slices.Sorted(slices.Values(got)), keys) {
		t.Errorf("of %d keys %d are deleted", len(keys), len(got))
	}
}
