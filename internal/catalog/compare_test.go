package catalog_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

func definition(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	var list []map[string]any
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}

	return &unstructured.Unstructured{Object: list[0]}
}

func TestCompare(t *testing.T) {
	t.Parallel()

	const name = "as.example.com"

	for what, tc := range map[string]struct {
		reason     string
		live, want string
		versions   []string
		made       bool
		verdict    catalog.Verdict
		words      string
	}{
		"the same": {reason: "nothing to write", live: crd(name, "v1"), want: crd(name, "v1"), verdict: catalog.Fits},
		"with defaults": {
			reason:  "what the API server fills in is no difference",
			live:    strings.Replace(crd(name, "v1"), "kind: Kind}", "kind: Kind, listKind: KindList, singular: kind}", 1),
			want:    crd(name, "v1"),
			verdict: catalog.Fits,
		},
		"with nothings": {
			reason: "what says nothing is not stored, and needs no right to write it",
			live:   strings.Replace(crd(name, "v1"), "storage: true", "storage: true, schema: {openAPIV3Schema: {type: object}}", 1),
			want: strings.Replace(strings.Replace(crd(name, "v1"),
				"scope: Namespaced", "scope: Namespaced\n    preserveUnknownFields: false", 1),
				"storage: true", `storage: true, deprecated: false, additionalPrinterColumns: [], schema: {openAPIV3Schema: {
          type: object, description: "", nullable: false, required: []}}`, 1),
			verdict: catalog.Fits,
		},
		"with a default that is false, Ambit's": {
			reason: "an upgrade brings its default", made: true, versions: []string{"v1"}, verdict: catalog.Differs,
			live: strings.Replace(crd(name, "v1"), "storage: true", "storage: true, schema: {openAPIV3Schema: {type: boolean}}", 1),
			want: strings.Replace(crd(name, "v1"), "storage: true",
				"storage: true, schema: {openAPIV3Schema: {type: boolean, default: false}}", 1),
		},
		"with an empty part that says something, Ambit's": {
			reason: "an upgrade brings its subresource", made: true, versions: []string{"v1"},
			live: crd(name, "v1"), want: strings.Replace(crd(name, "v1"), "served: true", "served: true, subresources: {status: {}}", 1),
			verdict: catalog.Differs,
		},
		"another schema, Ambit's": {
			reason: "an upgrade brings its schema", made: true, versions: []string{"v1"},
			live: crd(name, "v1"), want: strings.Replace(crd(name, "v1"), "scope: Namespaced", "scope: Cluster", 1),
			verdict: catalog.Differs,
		},
		"another version, Ambit's": {
			reason: "an upgrade brings its version", made: true, versions: []string{"v2"},
			live: crd(name, "v1"), want: crd(name, "v1", "v2"), verdict: catalog.Differs,
		},
		"newer, Ambit's": {
			reason: "an older operator in another namespace takes no version away", made: true, versions: []string{"v1"},
			live: crd(name, "v1", "v2"), want: crd(name, "v1"), verdict: catalog.Fits,
		},
		"too new, Ambit's": {
			reason: "an operator that needs a version which is gone cannot be installed", made: true, versions: []string{"v1"},
			live: crd(name, "v2"), want: crd(name, "v1"), verdict: catalog.Clashes, words: "does not serve v1, and has v2",
		},
		"somebody else's": {
			reason: "what somebody else made is used as it is", versions: []string{"v1"},
			live: crd(name, "v1", "v2"), want: strings.Replace(crd(name, "v1"), "Kind", "Sort", 1), verdict: catalog.Fits,
		},
		"somebody else's, too old": {
			reason: "what somebody else made is not changed", versions: []string{"v1", "v2"},
			live: crd(name, "v1"), want: crd(name, "v1", "v2"), verdict: catalog.Clashes, words: "one that Ambit did not make",
		},
	} {
		verdict, words := catalog.Compare(definition(t, tc.live), definition(t, tc.want), tc.versions, tc.made)
		if verdict != tc.verdict || !strings.Contains(words, tc.words) {
			t.Errorf("%s: %s: %d, %s", what, tc.reason, verdict, words)
		}
	}
}
