package rights_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/rights"
)

// someRules draws rules with wildcards, subresources, names, URLs and repeats.
func someRules() *rapid.Generator[[]rbacv1.PolicyRule] {
	some := func(least int, values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(values), least, 4)
	}

	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		if rapid.IntRange(0, 5).Draw(t, "url") == 0 {
			return rbacv1.PolicyRule{
				Verbs:           some(1, "get", "post", "*").Draw(t, "verbs"),
				NonResourceURLs: some(1, "/metrics", "/healthz/*", "/healthz/a", "/healthz", "*").Draw(t, "urls"),
			}
		}

		return rbacv1.PolicyRule{
			Verbs: some(1, "get", "list", "create", "*").Draw(t, "verbs"), APIGroups: some(1, "", "apps", "*").Draw(t, "groups"),
			Resources:     some(1, "secrets", "pods", "pods/log", "pods/a/b", "*", "*/log", "*/a/b").Draw(t, "resources"),
			ResourceNames: some(0, "a", "b", "").Draw(t, "names"),
		}
	}), 0, 4)
}

// TestCoversAsTheAPIServerDoes holds that rights are compared as the API server compares them when somebody writes a Role.
func TestCoversAsTheAPIServerDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		held, wanted := someRules().Draw(t, "held"), someRules().Draw(t, "wanted")
		covered, left := validation.Covers(held, wanted)

		if got := rights.Covers(held, wanted); got != covered {
			t.Fatalf("covered: %t, want %t", got, covered)
		}

		unique := slices.CompactFunc(left, func(a, b rbacv1.PolicyRule) bool { return reflect.DeepEqual(a, b) })
		got := rights.Missing(held, wanted)

		for _, rule := range got {
			if !slices.ContainsFunc(unique, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, rule) }) {
				t.Fatalf("missing is %v, want one of %v", rule, unique)
			}
		}

		if ok, more := validation.Covers(got, left); !ok {
			t.Fatalf("%v is not said to be missing", more)
		}
	})
}

// TestCommonIsWhatBothAllow holds that the rules two sets have in common allow what both allow, and nothing else.
func TestCommonIsWhatBothAllow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := someRules().Draw(t, "a"), someRules().Draw(t, "b")
		common := rights.Common(a, b)

		for _, set := range [][]rbacv1.PolicyRule{a, b} {
			if ok, more := validation.Covers(set, common); !ok {
				t.Fatalf("%v is not allowed by %v", more, set)
			}
		}

		for right := range rights.Each(slices.Concat(a, b)) {
			one := []rbacv1.PolicyRule{right.Rule()}
			if rights.Covers(a, one) && rights.Covers(b, one) && !rights.Covers(common, one) {
				t.Fatalf("%v is allowed by both, and not by %v", one, common)
			}
		}
	})
}

func words(n int, of string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(of, i)
	}

	return out
}

// TestCountBreaksNothingDown: three short lists stand for more rights than there is memory for, and what a list repeats is not
// another right.
func TestCountBreaksNothingDown(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want int
	}{
		"nothing":         {rbacv1.PolicyRule{}, 0},
		"nothing besides": {rbacv1.PolicyRule{Verbs: words(5, "v%d")}, 0},
		"one, many times": {rbacv1.PolicyRule{
			APIGroups: slices.Repeat([]string{""}, 60), Resources: slices.Repeat([]string{"pods"}, 60),
			Verbs: slices.Repeat([]string{"get"}, 300),
		}, 1},
		"names": {rbacv1.PolicyRule{
			APIGroups: words(1, "g%d"), Resources: words(3, "r%d"), Verbs: words(5, "v%d"), ResourceNames: words(7, "n%d"),
		}, 105},
		"URLs": {rbacv1.PolicyRule{NonResourceURLs: words(7, "/u%d"), Verbs: words(5, "v%d")}, 35},
		"a million": {rbacv1.PolicyRule{
			APIGroups: words(60, "g%d"), Resources: words(60, "r%d"), Verbs: words(300, "v%d"),
		}, 1_080_000},
		"without end": {rbacv1.PolicyRule{
			APIGroups: words(30_000, "g%d"), Resources: words(30_000, "r%d"), Verbs: words(30_000, "v%d"),
			ResourceNames: words(30_000, "n%d"),
		}, 1 << 31},
	} {
		if got := rights.Count([]rbacv1.PolicyRule{tc.rule}); got != tc.want {
			t.Errorf("%s: %d rights, want %d", reason, got, tc.want)
		}
	}
}

// TestCommonIsBounded: what has tens of thousands of parts in common with something else counts as having nothing in common.
func TestCommonIsBounded(t *testing.T) {
	t.Parallel()

	const most = 200

	var a, b []rbacv1.PolicyRule
	for i := range most {
		a = append(a, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "a"}, Verbs: []string{fmt.Sprint("v", i)}})
		b = append(b, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"pods", "b"}, Verbs: words(most, "v%d"), ResourceNames: words(i+1, "%d")[i:],
		})
	}

	if got := rights.Common(a[:2], b[:2]); len(got) != 4 {
		t.Errorf("%d rules are made of it, want one of each two", len(got))
	}

	if got := rights.Common(a, b); len(got) != 0 {
		t.Errorf("%d rules are made of it", len(got))
	}
}
