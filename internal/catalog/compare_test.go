package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
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
		"the same, Ambit's": {
			reason: "nor where Ambit might write it", live: crd(name, "v1", "v2"), want: crd(name, "v1", "v2"), made: true,
			verdict: catalog.Fits,
		},
		"with one version more, Ambit's": {
			reason: "a list of which the first is the same is another one", live: crd(name, "v1"), want: crd(name, "v1", "v2"), made: true,
			verdict: catalog.Differs,
		},
		"with another version in its place, Ambit's": {
			reason: "so is one of which the last is not", made: true, verdict: catalog.Differs,
			live: crd(name, "v1", "v2"),
			want: strings.Replace(crd(name, "v1", "v2"), "name: v2, served: true", "name: v2, served: false", 1),
		},
		"not served": {
			reason: "a version that is there and not served is none", versions: []string{"v1"},
			live: strings.Replace(crd(name, "v1"), "served: true", "served: false", 1), want: crd(name, "v1", "v2"),
			verdict: catalog.Clashes, words: "does not serve v1",
		},
		"with defaults": {
			reason: "what the API server fills in is no difference", made: true,
			live:    strings.Replace(crd(name, "v1"), "kind: Kind}", "kind: Kind, listKind: KindList, singular: kind}", 1),
			want:    crd(name, "v1"),
			verdict: catalog.Fits,
		},
		"with nothings": {
			reason: "what says nothing is not stored, and needs no right to write it", made: true,
			live: strings.Replace(crd(name, "v1"), "storage: true", "storage: true, schema: {openAPIV3Schema: {type: object}}", 1),
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

// TestTriesOfAnInstall: dry runs try ClusterRoles, the steps, and the Roles that the install will write in each namespace, in
// this order.
func TestTriesOfAnInstall(t *testing.T) {
	t.Parallel()

	permissions := func(resource string) []olmv1alpha1.StrategyDeploymentPermissions {
		return []olmv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}},
		}}}
	}
	csv := &olmv1alpha1.ClusterServiceVersion{}
	csv.Name = "op.v1"
	csv.Spec.InstallStrategy.StrategySpec.Permissions = permissions("secrets")
	csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = permissions("nodes")
	csv.Spec.CustomResourceDefinitions.Owned = []olmv1alpha1.CRDDescription{
		{Name: "as.example.com", Version: "v1"}, {Name: "as.example.com", Version: "v2"}, {Name: "as.example.com"},
		{Name: "bs.example.com", Version: "v3"},
	}
	s := &catalog.Steps{Origin: catalog.Origin{Namespace: "ops"}, CSV: csv}

	var got []string

	step := &unstructured.Unstructured{Object: map[string]any{"kind": "Step"}}

	for _, role := range catalog.Tries(s, []*unstructured.Unstructured{step}, []string{"a"}) {
		if role == step {
			got = append(got, "step")

			continue
		}

		rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
		resources, _, _ := unstructured.NestedStringSlice(rules[0].(map[string]any), "resources")
		got = append(got, fmt.Sprint(role.GetKind(), " ", role.GetNamespace(), " ", resources[0]))

		if role.GetAPIVersion() != "rbac.authorization.k8s.io/v1" || role.GetName() == "" || len(role.GetLabels()) > 0 {
			t.Errorf("the API server takes no %v", role.Object)
		}
	}

	if want := []string{"ClusterRole  nodes", "step", "Role a secrets", "Role ops secrets"}; !slices.Equal(got, want) {
		t.Errorf("tried are %q, want %q", got, want)
	}

	if csv.Namespace != "" {
		t.Error("what the catalog holds was changed")
	}

	if got := s.Wants("as.example.com"); !slices.Equal(got, []string{"v1", "v2"}) {
		t.Errorf("the operator works with %v", got)
	}
}
