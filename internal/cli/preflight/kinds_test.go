package preflight

import (
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/cli/files"
)

func documentOf(apiVersion, kind, namespace, name string) files.Document {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)

	return files.Document{Unstructured: obj, Source: name + ".yaml"}
}

func versionOf(name, replaces string) *olm.ClusterServiceVersion {
	csv := &olm.ClusterServiceVersion{}
	csv.Name, csv.Spec.Replaces = name, replaces

	return csv
}

// definitionOf is a definition in files, with the versions that it serves and one that it does not serve.
func definitionOf(scope, group, plural, kind string, served ...string) files.Document {
	d := documentOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group)
	versions := []any{map[string]any{"name": "v0", "served": false}}

	for _, name := range served {
		versions = append(versions, map[string]any{"name": name, "served": true})
	}

	d.Object["spec"] = map[string]any{
		"group": group, "scope": scope, "names": map[string]any{"plural": plural, "kind": kind}, "versions": versions,
	}

	return d
}

// TestKindsOfTheFiles: a kind that the cluster does not know is what the definition beside it makes it, in the versions that this
// serves. What the cluster knows stays what it is there. The rest is left out, and named.
func TestKindsOfTheFiles(t *testing.T) {
	t.Parallel()

	definitions := []files.Document{
		definitionOf("Namespaced", "example.com", "kettles", "Kettle", "v1", "v2"),
		definitionOf("Cluster", "example.com", "stoves", "Stove", "v1"),
		definitionOf("Cluster", "apps", "takenover", "Deployment", "v1"),
	}

	for reason, tc := range map[string]struct {
		document   files.Document
		resource   string
		namespaced bool
		note       string
	}{
		"the cluster knows it":                 {documentOf("v1", "Secret", "m", "s"), "secrets", true, ""},
		"the cluster knows that it has none":   {documentOf("v1", "Namespace", "", "m"), "namespaces", false, ""},
		"what the cluster knows is not taken":  {documentOf("apps/v1", "Deployment", "m", "d"), "deployments.apps", true, ""},
		"the files define it":                  {documentOf("example.com/v1", "Kettle", "m", "k"), "kettles.example.com", true, ""},
		"the files define several versions":    {documentOf("example.com/v2", "Kettle", "m", "k"), "kettles.example.com", true, ""},
		"the files define it for the cluster":  {documentOf("example.com/v1", "Stove", "", "s"), "stoves.example.com", false, ""},
		"the files do not serve this version":  {documentOf("example.com/v0", "Kettle", "m", "k"), "", false, "example.com/v0"},
		"the files define another version":     {documentOf("example.com/v3", "Kettle", "m", "k"), "", false, "m/k"},
		"the files define it in another group": {documentOf("example.org/v1", "Kettle", "", "k"), "", false, "asked about: k"},
		"nothing defines it":                   {documentOf("example.com/v1", "Pot", "m", "p"), "", false, "Pot of example.com/v1"},
	} {
		v := clusterOf(t, "")
		k := v.kindsOf(append(slices.Clone(definitions), tc.document))

		objects, err := k.objects([]files.Document{tc.document})
		if err != nil {
			t.Fatal(err)
		}

		notes := strings.Join(k.notes(), "; ")
		if !strings.Contains(notes, tc.note) || (notes == "") != (tc.note == "") || len(objects) == 0 != (tc.note != "") {
			t.Errorf("%s: it notes %q, and knows %d", reason, notes, len(objects))

			continue
		}

		for _, o := range objects {
			if o.Resource.String() != tc.resource || o.Namespaced != tc.namespaced || o.GetName() != tc.document.GetName() {
				t.Errorf("%s: %s is %s, in a namespace: %t", reason, o.GetName(), o.Resource, o.Namespaced)
			}
		}
	}
}

// TestDefinitionsThatDefineNothing: only CustomResourceDefinitions of the version that there is define a kind.
func TestDefinitionsThatDefineNothing(t *testing.T) {
	t.Parallel()

	old := definitionOf("Namespaced", "example.com", "kettles", "Kettle", "v1")
	old.SetAPIVersion("apiextensions.k8s.io/v1beta1")

	other := definitionOf("Namespaced", "example.com", "kettles", "Kettle", "v1")
	other.SetKind("ConversionReview")

	kettle := documentOf("example.com/v1", "Kettle", "m", "k")
	for _, d := range []files.Document{old, other} {
		k := clusterOf(t, "").kindsOf([]files.Document{d})

		if objects, err := k.objects([]files.Document{kettle}); err != nil || len(objects) != 0 {
			t.Errorf("by %s, it is %+v: %v", d.GroupVersionKind(), objects, err)
		}
	}
}

// TestUnknownKindsAreNamedOnce: there is one note for each kind, in a stable order, with as many names as a line has room for.
func TestUnknownKindsAreNamedOnce(t *testing.T) {
	t.Parallel()

	k := clusterOf(t, "").kindsOf(nil)

	var documents []files.Document
	for _, name := range []string{"f", "e", "d", "c", "b", "a"} {
		documents = append(documents, documentOf("example.com/v1", "Pot", "m", name))
	}

	documents = append(documents, documentOf("example.com/v1", "Kettle", "", "k"))
	if _, err := k.objects(documents); err != nil {
		t.Fatal(err)
	}

	notes := k.notes()
	if len(notes) != 2 || !strings.Contains(notes[0], "Kettle of example.com/v1") || !strings.HasSuffix(notes[0], ": k") ||
		!strings.HasSuffix(notes[1], ": m/a, m/b, m/c, m/d and 2 more") {
		t.Errorf("it notes %q", notes)
	}
}

// TestWhatCannotBeReadOfAFile: the error says which file it is.
func TestWhatCannotBeReadOfAFile(t *testing.T) {
	t.Parallel()

	broken := documentOf("v1", "Secret", "m", "broken")
	broken.Object["data"] = "no map"

	_, err := clusterOf(t, "").kindsOf(nil).objects([]files.Document{broken})
	if err == nil || !strings.Contains(err.Error(), "broken.yaml") {
		t.Errorf("it says %v", err)
	}
}

// TestWhichVersionsAreReplaced: once a version has succeeded, those that it replaces go, in whichever number of steps, but not
// copies of them in other namespaces, nor what has nothing to do with them.
func TestWhichVersionsAreReplaced(t *testing.T) {
	t.Parallel()

	listed := func(name, replaces string, labels map[string]string) unstructured.Unstructured {
		d := documentOf("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "ops", name)
		d.SetLabels(labels)

		if replaces != "" {
			d.Object["spec"] = map[string]any{"replaces": replaces}
		}

		return *d.Unstructured
	}
	copied := map[string]string{"olm.copiedFrom": "elsewhere"}

	for reason, tc := range map[string]struct {
		replaces string
		there    []unstructured.Unstructured
		want     string
	}{
		"it replaces none":           {"", []unstructured.Unstructured{listed("v1", "", nil)}, ""},
		"it replaces one":            {"v1", []unstructured.Unstructured{listed("v1", "", nil), listed("other", "", nil)}, "v1"},
		"it replaces two":            {"v1", []unstructured.Unstructured{listed("v1", "v0", nil), listed("v0", "", nil)}, "v0 v1"},
		"it replaces what is gone":   {"v1", nil, ""},
		"it replaces only a copy":    {"v1", []unstructured.Unstructured{listed("v1", "", copied)}, ""},
		"another one replaces it":    {"", []unstructured.Unstructured{listed("v3", "v2", nil)}, "v2"},
		"it counts as the files say": {"", []unstructured.Unstructured{listed("v2", "v1", nil), listed("v1", "", nil)}, ""},
	} {
		got := replacedBy(versionOf("v2", tc.replaces), tc.there)
		slices.Sort(got)

		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: replaced are %q, want %q", reason, got, tc.want)
		}
	}
}

// TestTheRightToDelete: a rule about some names is for these alone, and a rule about none is no rule.
func TestTheRightToDelete(t *testing.T) {
	t.Parallel()

	if got := deleting("g", "things", nil); got != nil {
		t.Errorf("for nothing, it is %+v", got)
	}

	got := deleting("g", "things", []string{"a", "b"})
	if len(got) != 1 || !slices.Equal(got[0].ResourceNames, []string{"a", "b"}) || !slices.Equal(got[0].Verbs, []string{"delete"}) ||
		!slices.Equal(got[0].APIGroups, []string{"g"}) || !slices.Equal(got[0].Resources, []string{"things"}) {
		t.Errorf("it is %+v", got)
	}
}
