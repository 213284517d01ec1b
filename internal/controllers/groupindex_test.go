package controllers

import (
	"fmt"
	"strings"
	"testing"
)

func TestIndexAnnotations(t *testing.T) {
	t.Parallel()

	got, left := indexAnnotations(map[string]string{"a": "writer", "b": "other"})
	if left != 0 || len(got) != 2 || got["account.ambit.dev/a"] != "writer" || got["account.ambit.dev/b"] != "other" {
		t.Errorf("got %v, and %d left", got, left)
	}

	// More than the API server takes: whoever does not fit in is refused by the policies, and the others are not.
	many := map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("namespace-%05d", i)] = strings.Repeat("a", 40)
	}

	got, left = indexAnnotations(many)
	size := 0

	for key, value := range got {
		size += len(key) + len(value)
	}

	if left == 0 || len(got)+left != len(many) || size > 256<<10 {
		t.Errorf("%d namespaces in %d bytes, and %d left", len(got), size, left)
	}

	if _, first := got["account.ambit.dev/namespace-00000"]; !first {
		t.Error("which namespaces fit in must not change from one time to the next")
	}
}
