package install

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func namespaces() map[string]facts.Namespace {
	prod := map[string]string{"prod": "true"}

	return map[string]facts.Namespace{
		"a": {Labels: prod}, "b": {Labels: prod}, "c": {}, "ending": {Labels: prod, Terminating: true},
		"kube-system": {Labels: prod}, "openshift-x": {Labels: prod}, "openshift": {Labels: prod}, "ambit-system": {Labels: prod},
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()

	everywhere := []string{""}

	for name, tc := range map[string]struct {
		reason  string
		group   Group
		want    []string
		problem string
	}{
		"Neither":     {"no names and no selector are all namespaces", Group{}, everywhere, ""},
		"EmptyNames":  {"an empty list of names is none", Group{Named: []string{}}, everywhere, ""},
		"Names":       {"names are sorted, and count once", Group{Named: []string{"b", "a", "b"}}, []string{"a", "b"}, ""},
		"MissingName": {"a name need not exist yet", Group{Named: []string{"later"}}, []string{"later"}, ""},
		"SystemName":  {"who names a system namespace means it", Group{Named: []string{"kube-system"}}, []string{"kube-system"}, ""},
		"NamesFirst":  {"names win", Group{Named: []string{"c"}, Selector: []byte(`{"prod":"true"}`)}, []string{"c"}, ""},
		"NamesOverWrong": {
			"also over a selector that cannot be read", Group{Named: []string{"c"}, Selector: []byte(`5`)}, []string{"c"}, "",
		},
		"AllAsName":     {"the empty name is no way to all", Group{Named: []string{""}}, nil, `must not contain ""`},
		"AllAmongNames": {"nor is it among others", Group{Named: []string{"a", ""}}, nil, `must not contain ""`},
		"Selector": {
			"labels choose what lives and is no system's", Group{Selector: []byte(`{"matchLabels":{"prod":"true"}}`)},
			[]string{"a", "b"}, "",
		},
		"Shorthand": {"plain labels mean matchLabels", Group{Selector: []byte(`{"prod":"true"}`)}, []string{"a", "b"}, ""},
		"Expression": {
			"an expression that holds for nearly everything picks no system namespace",
			Group{Selector: []byte(`{"matchExpressions":[{"key":"x","operator":"DoesNotExist"}]}`)}, []string{"a", "b", "c"}, "",
		},
		"EmptySelector": {"{} is never everything", Group{Selector: []byte(`{}`)}, nil, "selects nothing"},
		"NullSelector":  {"null is never everything", Group{Selector: []byte(`null`)}, nil, "selects nothing"},
		"EmptyLabels":   {"nor is an empty matchLabels", Group{Selector: []byte(`{"matchLabels":{}}`)}, nil, "selects nothing"},
		"NoBytes":       {"nor is nothing at all", Group{Selector: []byte{}}, nil, "selects nothing"},
		"BothForms": {
			"both forms mixed say nothing", Group{Selector: []byte(`{"matchLabels":{"prod":"true"},"prod":"true"}`)}, nil,
			"selects nothing",
		},
		"UnknownOperator": {
			"an unknown operator says nothing", Group{Selector: []byte(`{"matchExpressions":[{"key":"x","operator":"Has"}]}`)}, nil,
			"selects nothing",
		},
		"NoMatch": {
			"labels that nobody has choose nobody", Group{Selector: []byte(`{"prod":"false"}`)}, nil, "asks for; namespaces join as soon",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tc.group.Resolve(namespaces(), "ambit-system")
			if !slices.Equal(got.Namespaces, tc.want) || !strings.Contains(got.Problem, tc.problem) ||
				(got.Problem == "") != (tc.problem == "") {
				t.Errorf("%s: got %q (%s), want %q (%s)", tc.reason, got.Namespaces, got.Problem, tc.want, tc.problem)
			}

			if compile.IsEverywhere(got.Namespaces) != slices.Equal(tc.want, everywhere) {
				t.Errorf("%s: IsEverywhere is %t", tc.reason, compile.IsEverywhere(got.Namespaces))
			}
		})
	}
}

// TestResolveIsNeverWiderThanAsked holds that all namespaces are reached only by a group that says nothing about them, that there
// are targets or a problem, and that labels choose nothing that ends or belongs to the cluster.
func TestResolveIsNeverWiderThanAsked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := Group{Named: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "later", "kube-system", ""}), 0, 4).Draw(t, "named")}
		if text := rapid.SampledFrom([]string{
			"-", "", "{}", "null", "5", `"prod"`, "[]", `{"prod":"true"}`, `{"prod":"no"}`, `{"matchLabels":{}}`, `{"matchLabels":null}`,
			`{"matchExpressions":[]}`, `{"matchExpressions":[{"key":"prod","operator":"Exists"}]}`,
			`{"matchLabels":{"prod":"true"},"x":"y"}`, `{"prod":1}`,
		}).Draw(t, "selector"); text != "-" {
			g.Selector = []byte(text)
		}

		all := namespaces()
		got := g.Resolve(all, "ambit-system")

		if asked := len(g.Named) == 0 && g.Selector == nil; compile.IsEverywhere(got.Namespaces) != asked {
			t.Fatalf("reaches everything: %t, asks for it: %t", compile.IsEverywhere(got.Namespaces), asked)
		}

		if (len(got.Namespaces) == 0) != (got.Problem != "") {
			t.Fatalf("targets %q with the problem %q", got.Namespaces, got.Problem)
		}

		if !slices.IsSorted(got.Namespaces) || len(slices.Compact(slices.Clone(got.Namespaces))) != len(got.Namespaces) {
			t.Fatalf("%q are not sorted, or twice there", got.Namespaces)
		}

		for _, name := range got.Namespaces {
			if len(g.Named) == 0 && g.Selector != nil && (scope.IsSystemNamespace(name, "ambit-system") || all[name].Terminating) {
				t.Fatalf("labels chose %s", name)
			}
		}
	})
}

func TestParseAPIs(t *testing.T) {
	t.Parallel()

	for annotation, want := range map[string][]string{
		"": nil, ",": nil, "B.v1.x , A.v1.x,B.v1.x,": {"A.v1.x", "B.v1.x"},
	} {
		if got := ParseAPIs(annotation); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", annotation, got, want)
		}
	}
}
