package authority_test

import (
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/authority"
)

func anyRule() *rapid.Generator[rbacv1.PolicyRule] {
	some := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(values), 1, 3)
	}

	return rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		if rapid.IntRange(0, 5).Draw(t, "url") == 0 {
			return rbacv1.PolicyRule{
				Verbs: some("get", "*").Draw(t, "verbs"), NonResourceURLs: some("/metrics", "/healthz/*").Draw(t, "urls"),
			}
		}

		return rbacv1.PolicyRule{
			Verbs: some("get", "list", "create", "*").Draw(t, "verbs"), APIGroups: some("", "apps", "*").Draw(t, "groups"),
			Resources:     some("secrets", "pods", "pods/log", "*", "*/log").Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "names"),
		}
	})
}

// TestMergeSaysTheSame holds that merged rules allow exactly what the rules did, and come out the same from any order.
func TestMergeSaysTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(anyRule(), 0, 6).Draw(t, "rules")
		merged := authority.Merge(rules)

		if ok, left := validation.Covers(merged, rules); !ok {
			t.Fatalf("merged rules lost %v", left)
		}

		if ok, more := validation.Covers(rules, merged); !ok {
			t.Fatalf("merged rules allow %v besides", more)
		}

		if again := authority.Merge(rapid.Permutation(rules).Draw(t, "order")); !reflect.DeepEqual(again, merged) {
			t.Fatalf("in another order:\n%v\n%v", again, merged)
		}
	})
}

// TestMissingIsEnoughAndNoMore holds that what is missing, once granted, leaves nothing missing, and was not held before.
func TestMissingIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		held := rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "held")
		wanted := rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "wanted")
		missing := authority.Missing(held, wanted)

		if left := authority.Missing(append(held, missing...), wanted); left != nil {
			t.Fatalf("still missing: %v", left)
		}

		for _, r := range missing {
			for _, atom := range validation.BreakdownRule(r) {
				if ok, _ := validation.Covers(held, []rbacv1.PolicyRule{atom}); ok {
					t.Fatalf("%v is held already", atom)
				}
			}
		}
	})
}

func TestMergeReads(t *testing.T) {
	t.Parallel()

	got := authority.Merge([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"one"}},
	})
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list"}},
	}

	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMissingToWrite: who may create by the empty name lacks no right to create, and one to everything else that has a name.
func TestMissingToWrite(t *testing.T) {
	t.Parallel()

	rule := func(verb, resource string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
		}}
	}

	for _, tc := range []struct {
		held, wanted []rbacv1.PolicyRule
		lacks        bool
	}{
		{rule("create", "secrets", ""), rule("create", "secrets"), false},
		{rule("*", "*", "a", ""), rule("create", "secrets"), false},
		{rule("create", "secrets", "a"), rule("create", "secrets"), true},
		{rule("*", "*", ""), rule("create", "pods/eviction"), true},
		{rule("*", "*", ""), rule("create", "*"), true},
		{rule("*", "*", ""), rule("patch", "secrets"), true},
		{rule("*", "*", ""), rule("*", "secrets"), true},
		{rule("*", "*", ""), rule("create", "secrets", "a"), true},
	} {
		if missing := authority.MissingToWrite(tc.held, tc.wanted); (missing != nil) != tc.lacks {
			t.Errorf("who holds %v lacks of %v: %v", tc.held, tc.wanted, missing)
		}

		if authority.Missing(tc.held, tc.wanted) == nil {
			t.Errorf("who holds %v may hand out %v", tc.held, tc.wanted)
		}
	}
}
