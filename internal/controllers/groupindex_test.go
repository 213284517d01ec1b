package controllers

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestIndexAnnotations(t *testing.T) {
	t.Parallel()

	got, left := indexAnnotations(map[string]string{"a": "writer", "b": "other"}, nil)
	if left != 0 || len(got) != 2 || got["account.ambit.dev/a"] != "writer" || got["account.ambit.dev/b"] != "other" {
		t.Errorf("got %v, and %d left", got, left)
	}

	// More than the API server takes: whoever does not fit in is refused by the policies, and the others are not.
	many := map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("namespace-%05d", i)] = strings.Repeat("a", 40)
	}

	got, left = indexAnnotations(many, nil)
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

// TestIndexKeepsWhoIsInIt: however many namespaces somebody makes, and whatever they and their accounts are called, those that
// the policies know stay known, and others fill what is left, the shortest first.
func TestIndexKeepsWhoIsInIt(t *testing.T) {
	t.Parallel()

	accounts := map[string]string{"team": "writer", "tenant": "writer"}
	written, _ := indexAnnotations(accounts, nil)

	accounts["newcomer"], accounts["tenant"] = "writer", "other"
	for i := range 10_000 {
		accounts[fmt.Sprintf("a%04d", i)] = strings.Repeat("a", 250)
	}

	got, left := indexAnnotations(accounts, written)
	if left == 0 || got["account.ambit.dev/tenant"] != "other" || got["account.ambit.dev/newcomer"] != "writer" {
		t.Errorf("whose account has a short name is left out, with %d others", left)
	}

	full := map[string]string{}
	for i := range 20_000 {
		full[fmt.Sprintf("a%05d", i)] = "a"
	}

	accounts = maps.Clone(full)
	accounts["team"] = "writer"

	if got, left = indexAnnotations(accounts, written); left == 0 || got["account.ambit.dev/team"] != "writer" {
		t.Errorf("who was in it is left out, with %d others", left)
	}

	before, _ := indexAnnotations(full, nil)
	got, _ = indexAnnotations(accounts, before)

	for key := range before {
		if got[key] == "" {
			t.Fatalf("%s had to make room", key)
		}
	}
}
