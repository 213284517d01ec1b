package read

import (
	"maps"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// TestMarksAloneKeepNoRules: whoever may write ClusterRoles and ClusterRoleBindings decides which marks these bear, and as which
// field manager, so that any number of them could be remembered as Ambit's, with all that they say.
func TestMarksAloneKeepNoRules(t *testing.T) {
	t.Parallel()

	const slot = "role-0123456789"

	names, err := projected.NewNames(make([]byte, projected.KeySize), time.Now())
	if err != nil {
		t.Fatal(err)
	}

	given := func(kind projected.Kind) string { return names.New(kind, "", scope.TemplatesKey(), slot) }
	chosen := func(projected.Kind) string { return slot }

	for reason, tc := range map[string]struct {
		name  func(projected.Kind) string
		age   time.Duration
		names *projected.Names
		kept  bool
	}{
		"a name that Ambit gave":            {given, 0, names, true},
		"of before Ambit gave such names":   {chosen, time.Hour, names, true},
		"marks alone":                       {chosen, 0, names, false},
		"where the key of names is unknown": {chosen, 0, nil, true},
	} {
		meta := func(kind projected.Kind) metav1.ObjectMeta {
			return metav1.ObjectMeta{
				Name: tc.name(kind), CreationTimestamp: metav1.NewTime(time.Now().Add(-tc.age)),
				Annotations:   map[string]string{scope.AnnotationOwner: "ScopeInstance//i"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: scope.FieldManager}},
			}
		}
		table := projectedTable{names: tc.names}

		for _, obj := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta(projected.ClusterRole), Rules: []rbacv1.PolicyRule{scope.GuardRule()}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta(projected.ClusterRoleBinding), Subjects: []rbacv1.Subject{{Name: "a"}}},
		} {
			r, found := table.convert(obj)
			if !found || (r.Rules+r.Subjects != "") != tc.kept {
				t.Errorf("%s: a %T is found: %t, and keeps %q", reason, obj, found, r.Rules+r.Subjects)
			}
		}
	}
}
