package read

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// TestProjectedTableFindsWhatItHolds compares a table with a plain map: what was put is found by its name alone, under the key
// that it was put under last, also where the name stands for another key or for none, and where keys share a tag with what lost
// its marks.
func TestProjectedTableFindsWhatItHolds(t *testing.T) {
	t.Parallel()

	given, err := projected.NewNames(make([]byte, projected.KeySize), time.Now())
	if err != nil {
		t.Fatal(err)
	}

	reconcileKeys, namespaces := []string{"ops", "other", "install:ops"}, []string{"a", "b"}
	keys := []projectedKey{
		{"a", facts.ProjectedKey{Kind: projected.Role, Name: "of-before"}},
		{"b", facts.ProjectedKey{Kind: projected.Role, Name: "looks-0123456789abcdef"}},
	}

	for _, namespace := range namespaces {
		for _, key := range reconcileKeys {
			keys = append(keys, projectedKey{namespace, facts.ProjectedKey{
				Kind: projected.Role, Name: given.New(projected.Role, namespace, key, "copy-0123456789"),
			}})
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		table, held := projectedTable{changed: func(...string) {}}, map[projectedKey]string{}
		if rapid.Bool().Draw(t, "whether names are known") {
			table.names = given
		}

		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, under := rapid.SampledFrom(keys).Draw(t, "object"), rapid.SampledFrom(reconcileKeys).Draw(t, "key")
				record := projectedRecord{reconcileKey: under}

				if table.names != nil && rapid.Bool().Draw(t, "whether its marks are lost") {
					tag, _ := given.TagIn(key.Kind, key.namespace, key.Name)
					record, under = projectedRecord{tag: tag}, lost(tag)
				}

				table.put(key, record, arrival{})
				held[key] = under
			},
			"drop": func(t *rapid.T) {
				key := rapid.SampledFrom(keys).Draw(t, "object")
				table.drop(key, 0)
				delete(held, key)
			},
			"forget": func(t *rapid.T) {
				namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
				table.forget(namespace)
				maps.DeleteFunc(held, func(key projectedKey, _ string) bool { return key.namespace == namespace })
			},
			"": func(t *rapid.T) {
				for _, key := range keys {
					if _, under, known := table.find(key); under != held[key] || known != (held[key] != "") {
						t.Fatalf("%v is under %q, want %q", key, under, held[key])
					}
				}

				if got := table.versions(projected.Role); len(got) != len(held) {
					t.Fatalf("it holds %d objects, want %d", len(got), len(held))
				}

				if got, want := len(table.byKey), len(slices.Compact(slices.Sorted(maps.Values(held)))); got != want {
					t.Fatalf("it has %d keys, want %d", got, want)
				}

				if len(held) == 0 && len(table.byTag)+len(table.keyOf) > 0 {
					t.Fatalf("it is empty and remembers %v and %v", table.byTag, table.keyOf)
				}
			},
		})
	})
}
