package catalog_test

import (
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

func TestWhatCannotBeReadStopsNothingElse(t *testing.T) {
	t.Parallel()

	good := "- packageName: good\n  channels: [{name: a, currentCSV: good.v1}]\n"
	goodCSV := csv("good.v1", "1.0.0", "")

	for name, tc := range map[string]struct {
		reason                          string
		packages, versions, definitions string
		problems                        []string
	}{
		"everything in order": {
			reason:   "nothing is wrong with a catalog that has nothing wrong",
			packages: good, versions: goodCSV, definitions: crd("as.example.com", "v1"),
		},
		"syntax": {
			reason:   "a syntax error in one entry leaves the others readable",
			packages: good, versions: "- apiVersion: [\n  metadata:\n    name: bad.v1\n" + goodCSV,
			problems: []string{"clusterServiceVersions: entry 1, which may be bad.v1, cannot be read: "},
		},
		"syntax in the middle, indented": {
			reason: "a list may be indented", versions: goodCSV,
			packages: "  - packageName: first\n    channels: [{name: a, currentCSV: good.v1}]\n  - }{\n  - packageName: good\n" +
				"    channels: [{name: a, currentCSV: good.v1}]\n",
			problems: []string{"packages: entry 2 cannot be read: "},
		},
		"no list": {
			reason: "what is no list is told by its key", packages: good, versions: goodCSV, definitions: "just words",
			problems: []string{"customResourceDefinitions: it is no list"},
		},
		"one object": {
			reason:   "one object that nobody made a list of is taken as one",
			packages: strings.Replace(strings.Replace(good, "- ", "", 1), "\n  ", "\n", 1), versions: goodCSV,
		},
		"documents": {
			reason: "lists may be split into documents", versions: "---\n" + goodCSV + "--- # more\n" + csv("other.v1", "1.0.0", ""),
			packages: good,
		},
		"entries that are nothing": {
			reason:   "empty entries are nobody's fault, and words are no objects",
			packages: good + "-\n- hello\n- 7\n", versions: goodCSV,
			problems: []string{"packages: entry 3 is no object", "packages: entry 4 is no object"},
		},
		"older definitions": {
			reason:   "Kubernetes no longer serves v1beta1 of definitions, so one would be refused at the install",
			packages: good, versions: goodCSV,
			definitions: strings.Replace(crd("as.example.com", "v1"), "io/v1", "io/v1beta1", 1) + crd("bs.example.com", "v1"),
			problems:    []string{"customResourceDefinitions: as.example.com: it is of apiextensions.k8s.io/v1beta1"},
		},
		"other kinds": {
			reason:   "an object of another kind is not written because it stands in a catalog",
			packages: good, versions: goodCSV + "- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
			definitions: "- {apiVersion: v1, kind: ClusterRole, metadata: {name: s}}\n",
			problems: []string{
				"customResourceDefinitions: s: it is a ClusterRole, not a CustomResourceDefinition",
				"clusterServiceVersions: s: it is a Secret, not a ClusterServiceVersion",
			},
		},
		"names": {
			reason:   "a name that leads elsewhere is none",
			packages: good, versions: goodCSV + csv("../../etc", "1.0.0", "") + csv("''", "1.0.0", ""),
			problems: []string{"clusterServiceVersions: entry 2: metadata.name", "clusterServiceVersions: entry 3: metadata.name"},
		},
		"fields of another type": {
			reason:   "a field of another type is told with the name of its object, and by the package that wants it",
			packages: good + "- packageName: bad\n  channels: [{name: a, currentCSV: bad.v1}]\n",
			versions: goodCSV + csv("bad.v1", "[]", ""),
			problems: []string{
				"clusterServiceVersions: bad.v1: it is no ClusterServiceVersion: ",
				"packages: bad: channel a: ClusterServiceVersion bad.v1 cannot be used: ",
			},
		},
		"twice": {
			reason:   "of two of a name, the first one counts",
			packages: good + good, versions: goodCSV + goodCSV,
			problems: []string{
				"clusterServiceVersions: entry 2: good.v1 is there twice", "packages: entry 2: package good is there twice",
			},
		},
		"channels": {
			reason: "a channel without a version is none, and one whose version is missing says so", versions: goodCSV,
			packages: good + "- packageName: bad\n  defaultChannel: z\n  channels: [{name: a}, {name: b, currentCSV: no.v1}]\n" +
				"- packageName: empty\n- channels: []\n",
			problems: []string{
				"packages: bad: channel 1 needs a name and a currentCSV", "packages: empty: it has no channel",
				"packages: entry 4: it has no packageName",
				"packages: bad: its default channel z is not there",
				"packages: bad: channel b: the catalog holds no ClusterServiceVersion no.v1",
			},
		},
		"ranges": {
			reason: "a range that cannot be read skips nothing", packages: good,
			versions: strings.Replace(goodCSV, "name: good.v1}", "name: good.v1, annotations: {olm.skipRange: rubbish}}", 1),
			problems: []string{`clusterServiceVersions: good.v1: olm.skipRange "rubbish" says nothing: `},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := parse(tc.packages, tc.versions, tc.definitions)

			if len(c.Problems) != len(tc.problems) {
				t.Fatalf("%s: the problems are\n%s", tc.reason, strings.Join(c.Problems, "\n"))
			}

			for i, want := range tc.problems {
				if !strings.HasPrefix(c.Problems[i], want) {
					t.Errorf("%s: problem %d is %q, not %q", tc.reason, i, c.Problems[i], want)
				}
			}

			choice, err := c.Choose(&catalog.Request{Package: "good", Subscription: "s"})
			if err != nil || choice.Next.Name != "good.v1" {
				t.Errorf("%s: the good package is not served: %v", tc.reason, err)
			}
		})
	}
}

func TestParseDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()

	all := []string{
		csv("a.v1", "1.0.0", ""), csv("a.v2", "2.0.0", "a.v1"), csv("a.v3", "3.0.0", "a.v2"), csv("b.v1", "1.0.0", ""), "- [bad\n",
	}

	rapid.Check(t, func(t *rapid.T) {
		c := parse("- packageName: a\n  channels: [{name: c, currentCSV: a.v3}]\n",
			strings.Join(rapid.Permutation(all).Draw(t, "order"), ""), "")

		if c.Versions() != 4 || len(c.Problems) != 1 {
			t.Fatalf("%d versions, and %v", c.Versions(), c.Problems)
		}
	})
}

// FuzzParse holds that no input panics, in parsing or in what follows, and that what is written is of the closed list of kinds
// and in its namespace.
func FuzzParse(f *testing.F) {
	good := csv("a.v1", "1.0.0", "", "customresourcedefinitions: {owned: [{name: as.example.com, version: v1, kind: A}]}")

	f.Add("- packageName: a\n  channels: [{name: c, currentCSV: a.v1}]\n", good, crd("as.example.com", "v1"))
	f.Add("- packageName: a\n  channels: [{name: c, currentCSV: a.v1, entries: [{name: a.v1, replaces: a.v1}]}]\n", good, "-\n-")
	f.Add("- [", "- {", "- - - -")
	f.Add("a: &a [*a]", "- &x {x: 1}\n- *x", "---\n---\n- 1.5")
	f.Add("- packageName: 1", "- metadata: 7\n  kind: ClusterServiceVersion",
		"- metadata: {name: [a]}\n  kind: CustomResourceDefinition")

	f.Fuzz(func(t *testing.T, packages, versions, definitions string) {
		c := parse(packages, versions, definitions)

		for _, name := range c.Packages() {
			for _, installed := range []string{"", "a.v1", "b"} {
				choice, err := c.Choose(&catalog.Request{Package: name, Installed: installed, Subscription: "s"})
				if err != nil || choice.Next == nil {
					continue
				}

				s := c.Steps(choice.Next, catalog.Origin{Source: "s", SourceNamespace: "n", Package: name, Namespace: "n"})
				allowed := []string{"CustomResourceDefinition", "ClusterServiceVersion"}

				for _, obj := range s.Objects {
					inNamespace := obj.GetNamespace() == "n" || obj.GetKind() == "CustomResourceDefinition"
					if !slices.Contains(allowed, obj.GetKind()) || !inNamespace {
						t.Errorf("it would write %s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
					}
				}

				s.Plan(make([]olmv1alpha1.StepStatus, len(s.Objects)))
				_ = s.Digest()
			}
		}
	})
}
