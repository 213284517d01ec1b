package read

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
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

	reconcileKeys := []scope.Key{scope.NamespaceScopes.In("ops"), scope.NamespaceScopes.In("other"), scope.Installs.In("ops")}
	namespaces := []string{"a", "b"}
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
		table, held := projectedTable{changed: func(bucket) {}}, map[projectedKey]bucket{}
		if rapid.Bool().Draw(t, "whether names are known") {
			table.names = given
		}

		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, in := rapid.SampledFrom(keys).Draw(t, "object"), bucket{key: rapid.SampledFrom(reconcileKeys).Draw(t, "key")}

				if table.names != nil && rapid.Bool().Draw(t, "whether its marks are lost") {
					tag, _ := given.TagIn(key.Kind, key.namespace, key.Name)
					in = bucket{tag: tag}
				}

				table.put(key, projectedRecord{bucket: in, Projected: facts.Projected{Content: &facts.Content{}}}, arrival{})
				held[key] = in
			},
			"drop": func(t *rapid.T) {
				key := rapid.SampledFrom(keys).Draw(t, "object")
				table.drop(key, 0)
				delete(held, key)
			},
			"forget": func(t *rapid.T) {
				namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
				table.forget(namespace)
				maps.DeleteFunc(held, func(key projectedKey, _ bucket) bool { return key.namespace == namespace })
			},
			"": func(t *rapid.T) {
				for _, key := range keys {
					want, holds := held[key]
					if _, in, known := table.find(key); in != want || known != holds {
						t.Fatalf("%v is in %v, want %v", key, in, want)
					}
				}

				if got := table.versions(projected.Role); len(got) != len(held) {
					t.Fatalf("it holds %d objects, want %d", len(got), len(held))
				}

				filled := map[bucket]struct{}{}
				for _, in := range held {
					filled[in] = struct{}{}
				}

				if got, want := len(table.buckets), len(filled); got != want {
					t.Fatalf("it has %d buckets, want %d", got, want)
				}

				if len(held) == 0 && len(table.byTag)+len(table.bucketOf) > 0 {
					t.Fatalf("it is empty and remembers %v and %v", table.byTag, table.bucketOf)
				}
			},
		})
	})
}
