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
			Resources:     some(1, "secrets", "pods", "pods/log", "pods/a/b", "*", "*/log", "*/a/b", "*/", "").Draw(t, "resources"),
			ResourceNames: some(0, "a", "b", "").Draw(t, "names"),
		}
	}), 0, 4)
}

// someOf draws rules that others may well allow: one of these for each, with a part of every list. Of what is drawn at random,
// hardly anything is allowed.
func someOf(t *rapid.T, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	part := func(list []string, narrower map[string]string) []string {
		if len(list) == 0 {
			return nil
		}

		out := rapid.SliceOfN(rapid.SampledFrom(list), 1, len(list)).Draw(t, "part")
		for i, word := range out {
			if one := narrower[word]; one != "" && rapid.Bool().Draw(t, "narrower") {
				out[i] = one
			}
		}

		return out
	}

	out := make([]rbacv1.PolicyRule, 0, len(rules))
	for _, r := range rules {
		out = append(out, rbacv1.PolicyRule{
			Verbs: part(r.Verbs, map[string]string{"*": "get"}), APIGroups: part(r.APIGroups, map[string]string{"*": "apps"}),
			Resources:       part(r.Resources, map[string]string{"*": "pods", "*/log": "pods/log", "*/a/b": "pods/a/b"}),
			ResourceNames:   part(r.ResourceNames, nil),
			NonResourceURLs: part(r.NonResourceURLs, map[string]string{"*": "/metrics", "/healthz/*": "/healthz/a"}),
		})
	}

	return out
}

// TestCoversAsTheAPIServerDoes holds that rights are compared as the API server compares them when somebody writes a Role.
func TestCoversAsTheAPIServerDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		held := someRules().Draw(t, "held")

		wanted := someOf(t, held)
		if rapid.Bool().Draw(t, "of its own") {
			wanted = someRules().Draw(t, "wanted")
		}

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
		a := someRules().Draw(t, "a")
		b := slices.Concat(someRules().Draw(t, "b"), someOf(t, a))
		common := rights.Common(a, b)

		for _, set := range [][]rbacv1.PolicyRule{a, b} {
			if ok, more := validation.Covers(set, common); !ok {
				t.Fatalf("%v is not allowed by %v", more, set)
			}
		}

		for i, rule := range common {
			if err := refused(&rule); err != "" {
				t.Fatalf("the API server refuses %v: %s", rule, err)
			}

			if slices.ContainsFunc(common[:i], func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, rule) }) {
				t.Fatalf("%v is there twice", rule)
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

// refused says what the API server has against a rule of a ClusterRole.
func refused(r *rbacv1.PolicyRule) string {
	switch {
	case len(r.Verbs) == 0:
		return "no verbs"
	case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
		return "both URLs and resources"
	case len(r.NonResourceURLs) == 0 && (len(r.APIGroups) == 0 || len(r.Resources) == 0):
		return "neither URLs nor resources"
	default:
		return ""
	}
}

// TestCommonOfURLs holds for the URLs of two rules, of which neither allows the other.
func TestCommonOfURLs(t *testing.T) {
	t.Parallel()

	urls := func(verb, url string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get", verb}, NonResourceURLs: []string{url}, ResourceNames: names}}
	}

	for reason, tc := range map[string]struct {
		a, b []rbacv1.PolicyRule
		want []string
	}{
		"the same":                         {urls("put", "/metrics"), urls("post", "/metrics"), []string{"/metrics"}},
		"the second has one":               {urls("put", "*"), urls("post", "/metrics"), []string{"/metrics"}},
		"the first has one":                {urls("put", "/metrics"), urls("post", "/met*"), []string{"/metrics"}},
		"neither":                          {urls("put", "/metrics"), urls("post", "/healthz"), nil},
		"no rule with names in the first":  {urls("put", "/metrics", "a"), urls("post", "/metrics"), nil},
		"no rule with names in the second": {urls("put", "/metrics"), urls("post", "/metrics", "a"), nil},
	} {
		var got []string

		for _, rule := range rights.Common(tc.a, tc.b) {
			if got = append(got, rule.NonResourceURLs...); !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("%s: the verbs are %v, and only get is in both", reason, rule.Verbs)
			}
		}

		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", reason, got, tc.want)
		}
	}
}

// TestCommonOfNames holds for the names of two rules, of which neither allows the other.
func TestCommonOfNames(t *testing.T) {
	t.Parallel()

	of := func(verb string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", verb}, ResourceNames: names,
		}}
	}

	for reason, tc := range map[string]struct {
		a, b, want []rbacv1.PolicyRule
	}{
		"any and any":   {of("put"), of("post"), of("get")},
		"some and any":  {of("put", "a", "b"), of("post"), of("get", "a", "b")},
		"any and some":  {of("put"), of("post", "a", "b"), of("get", "a", "b")},
		"one in common": {of("put", "a", "b"), of("post", "b", "c"), of("get", "b")},
		"none":          {of("put", "a"), of("post", "b"), nil},
	} {
		got := rights.Common(tc.a, tc.b)
		if a, b := rights.Missing(got, tc.want), rights.Missing(tc.want, got); len(a)+len(b) > 0 {
			t.Errorf("%s: got %v, want %v", reason, got, tc.want)
		}
	}
}

// TestLongListsAllowWhatIsInThem: a list that is too long to be read through is looked up in, and allows no more for that.
func TestLongListsAllowWhatIsInThem(t *testing.T) {
	t.Parallel()

	for _, n := range []int{1, 12, 13, 100} {
		held := rbacv1.PolicyRule{
			Verbs: words(n, "v%d"), APIGroups: words(n, "g%d"), Resources: words(n, "r%d"), ResourceNames: words(n, "n%d"),
		}
		last := rbacv1.PolicyRule{
			Verbs: held.Verbs[n-1:], APIGroups: held.APIGroups[n-1:], Resources: held.Resources[n-1:],
			ResourceNames: held.ResourceNames[n-1:],
		}

		if !rights.Covers([]rbacv1.PolicyRule{held}, []rbacv1.PolicyRule{last}) {
			t.Errorf("lists of %d words do not allow their last ones", n)
		}

		for _, list := range []func(r *rbacv1.PolicyRule) *[]string{
			func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs },
			func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
			func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
			func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		} {
			other := last
			if *list(&other) = []string{"other"}; rights.Covers([]rbacv1.PolicyRule{held}, []rbacv1.PolicyRule{other}) {
				t.Errorf("lists of %d words allow %v", n, other)
			}
		}
	}
}

// TestDistinctIsInOrder: what a list repeats comes once, where it came first, however long the list is.
func TestDistinctIsInOrder(t *testing.T) {
	t.Parallel()

	for _, n := range []int{0, 1, 6, 12, 13, 50} {
		want := words(n, "%d")
		if got := rights.Distinct(want); !slices.Equal(got, want) {
			t.Errorf("%v became %v", want, got)
		}

		twice := slices.Concat(want, want)
		if got := rights.Distinct(twice); !slices.Equal(got, want) || !slices.Equal(twice, slices.Concat(want, want)) {
			t.Errorf("%v became %v", twice, got)
		}
	}
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

// TestCommonOfMuchTheSame: what one set allows entirely is kept as it is written, and not broken into what its rules have in
// common one by one, which might be more than counts.
func TestCommonOfMuchTheSame(t *testing.T) {
	t.Parallel()

	var small, large []rbacv1.PolicyRule
	for i := range 100 {
		r := rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"pods", fmt.Sprint("r", i)}, Verbs: []string{"get", fmt.Sprint("v", i)},
		}
		small = append(small, r)
		r.Verbs = append(slices.Clone(r.Verbs), fmt.Sprint("more", i))
		r.Resources = append(slices.Clone(r.Resources), fmt.Sprint("more", i))
		large = append(large, r)
	}

	for reason, got := range map[string][]rbacv1.PolicyRule{
		"the same": rights.Common(small, small), "more in the second": rights.Common(small, large),
		"more in the first": rights.Common(large, small),
	} {
		if !reflect.DeepEqual(got, small) {
			t.Errorf("%s: %d rules, want those %d", reason, len(got), len(small))
		}
	}
}

// TestManyRulesAllowWhatEachDoes holds that rules which are too many to be read through allow what one of them does, and no more.
func TestManyRulesAllowWhatEachDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var held []rbacv1.PolicyRule
		for range rapid.IntRange(0, 40).Draw(t, "sets") {
			held = append(held, someRules().Draw(t, "held")...)
		}

		all := rights.NewHeld(held)

		for right := range rights.Each(slices.Concat(someRules().Draw(t, "wanted"), someOf(t, held))) {
			one := []rbacv1.PolicyRule{right.Rule()}
			by := slices.ContainsFunc(held, func(r rbacv1.PolicyRule) bool { return rights.Covers([]rbacv1.PolicyRule{r}, one) })

			if missing := rights.MissingFrom(one, rights.NewHeld(), all); (len(missing) == 0) != by {
				t.Fatalf("one rule allows %v: %t, but all: %v", one, by, missing)
			}
		}
	})
}

// BenchmarkMissing compares many rules with as many: the time for each should not grow with their number.
func BenchmarkMissing(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		for what, rule := range map[string]func(word string) rbacv1.PolicyRule{
			"resources": func(word string) rbacv1.PolicyRule {
				return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{word}, Verbs: []string{"get"}}
			},
			"names": func(word string) rbacv1.PolicyRule {
				return rbacv1.PolicyRule{
					APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{word},
				}
			},
			"urls": func(word string) rbacv1.PolicyRule {
				return rbacv1.PolicyRule{NonResourceURLs: []string{"/" + word, "/" + word + "/*"}, Verbs: []string{"get"}}
			},
		} {
			var rules []rbacv1.PolicyRule
			for _, word := range words(n, "word-%d") {
				rules = append(rules, rule(word))
			}

			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				for b.Loop() {
					if missing := rights.Missing(rules, rules); missing != nil {
						b.Fatal(missing)
					}
				}

				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/rule")
			})
		}
	}
}
