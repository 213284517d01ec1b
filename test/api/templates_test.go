package api

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// create creates a resource without storing it, of a document that holds everything but the type and the name. A field that
// the schema does not have is refused, as kubectl refuses it.
func create(t *testing.T, kind, document string) (*unstructured.Unstructured, error) {
	t.Helper()

	cfg := testcluster.Config(t)
	testcluster.InstallCRDs(t, cfg)

	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatalf("the test's own document: %v", err)
	}

	object.SetGroupVersionKind(operatorsv1alpha1.GroupVersion.WithKind(kind))
	object.SetName("a-resource")

	return object, c.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
}

func TestScopeTemplateAccepts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, document string
	}{
		"Empty": {
			reason:   "a template may be filled later",
			document: `{}`,
		},
		"SubjectsOfAnEntry": {
			reason: "the shortest way to write it",
			document: `spec: {clusterRoles: [{generateName: foo-, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}],
				subjects: [{kind: ServiceAccount, name: a, namespace: b}]}]}`,
		},
		"BindingTemplateOfAnEntry": {
			reason: "as the enhancement proposal prints it, when the indentation is read so",
			document: `spec: {clusterRoles: [{generateName: fooClusterRole-, bindingTemplate:
				{subjects: [{kind: ServiceAccount, name: fooServiceAccount, namespace: null}]}}]}`,
		},
		"BindingTemplateOfAll": {
			reason: "and when it is read so; namespace and apiGroup may be null, which status complains about where it matters",
			document: `spec: {clusterRoles: [{generateName: fooClusterRole-}], bindingTemplate:
				{subjects: [{kind: ServiceAccount, name: fooServiceAccount, namespace: null, apiGroup: null}]}}`,
		},
		"UserAndGroup": {
			reason: "whoever RBAC knows can be a subject",
			document: `spec: {bindingTemplate: {subjects: [{kind: User, name: "jane@example.com", apiGroup: rbac.authorization.k8s.io},
				{kind: Group, name: "oidc:team a"}]}}`,
		},
		"NonResourceURLs": {
			reason:   "a ClusterRole may have such rules",
			document: `spec: {clusterRoles: [{generateName: foo-, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}]}`,
		},
		"TheSameNameTwice": {
			reason:   "two entries may begin alike; they are told apart by their order",
			document: `spec: {clusterRoles: [{generateName: foo-}, {generateName: foo-}]}`,
		},
		"ManyRules": {
			reason: "checking what is as large as it may be must not cost more than the API server allows",
			document: `spec: {clusterRoles: [{generateName: foo-, rules: [` + strings.Repeat(
				`{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [get]},`, 1000) + `]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := create(t, "ScopeTemplate", tc.document); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestScopeTemplateRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, document, field string
	}{
		"NoGenerateName": {
			reason: "a ClusterRole needs a name", field: "spec.clusterRoles[0].generateName",
			document: `spec: {clusterRoles: [{rules: []}]}`,
		},
		"EmptyGenerateName": {
			reason: "a hash alone says nothing to people", field: "spec.clusterRoles[0].generateName",
			document: `spec: {clusterRoles: [{generateName: ""}]}`,
		},
		"SlashInGenerateName": {
			reason: "RBAC's names may hold neither slash nor percent sign", field: "spec.clusterRoles[0].generateName",
			document: `spec: {clusterRoles: [{generateName: team/role-}]}`,
		},
		"NoVerbs": {
			reason: "RBAC refuses such a rule, and here its author reads it at once", field: "spec.clusterRoles[0].rules",
			document: `spec: {clusterRoles: [{generateName: foo-, rules: [{apiGroups: [""], resources: [pods], verbs: []}]}]}`,
		},
		"NoResources": {
			reason: "a rule about nothing", field: "spec.clusterRoles[0].rules",
			document: `spec: {clusterRoles: [{generateName: foo-, rules: [{apiGroups: [""], verbs: [get]}]}]}`,
		},
		"NoAPIGroups": {
			reason: "RBAC wants the core group written as an empty string", field: "spec.clusterRoles[0].rules",
			document: `spec: {clusterRoles: [{generateName: foo-, rules: [{resources: [pods], verbs: [get]}]}]}`,
		},
		"ResourcesAndURLs": {
			reason: "RBAC refuses a rule about both", field: "spec.clusterRoles[0].rules",
			document: `spec: {clusterRoles: [{generateName: foo-,
				rules: [{apiGroups: [""], resources: [pods], nonResourceURLs: [/], verbs: [get]}]}]}`,
		},
		"UnknownKindOfSubject": {
			reason: "RBAC knows three", field: "spec.bindingTemplate.subjects[0].kind",
			document: `spec: {bindingTemplate: {subjects: [{kind: Team, name: a}]}}`,
		},
		"NamelessSubject": {
			reason: "nobody is no subject", field: "spec.clusterRoles[0].subjects[0].name",
			document: `spec: {clusterRoles: [{generateName: foo-, subjects: [{kind: User, name: ""}]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, "ScopeTemplate", tc.document)
			if got := refusedFields(t, err); len(got) == 0 || got[0] != tc.field {
				t.Errorf("%s: want %s refused, got %v", tc.reason, tc.field, got)
			}
		})
	}
}

func TestScopeInstanceAccepts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, document string
		// keeps is the selector as it has to be stored.
		keeps map[string]any
	}{
		"Seed": {
			reason: "as the enhancement proposal prints it", keeps: map[string]any{"fooKey": "barValue"},
			document: `spec: {scopeTemplateName: foo, namespaces: [foo, bar], namespaceSelector: {fooKey: barValue}}`,
		},
		"WholeCluster": {
			reason: "with neither names nor a selector", document: `spec: {scopeTemplateName: foo}`,
		},
		"Nulls": {
			reason:   "what a template engine writes for values that are not set",
			document: `spec: {scopeTemplateName: foo, namespaces: null, namespaceSelector: null}`,
		},
		"Duplicates": {
			reason: "count once, and are no mistake", document: `spec: {scopeTemplateName: foo, namespaces: [a, a]}`,
		},
		"LabelSelector": {
			reason:   "the form that Kubernetes uses",
			document: `spec: {scopeTemplateName: foo, namespaceSelector: {matchLabels: {a: b}, matchExpressions: []}}`,
			keeps:    map[string]any{"matchLabels": map[string]any{"a": "b"}, "matchExpressions": []any{}},
		},
		"ShorthandWithSlash": {
			reason:   "the usual labels have a prefix",
			document: `spec: {scopeTemplateName: foo, namespaceSelector: {cool.io/prod: "true"}}`,
			keeps:    map[string]any{"cool.io/prod": "true"},
		},
		"EmptySelector": {
			reason: "is kept as it is; it selects nothing, which status says", keeps: map[string]any{},
			document: `spec: {scopeTemplateName: foo, namespaceSelector: {}}`,
		},
		"MixedSelector": {
			reason:   "is accepted by the API and an error in status",
			document: `spec: {scopeTemplateName: foo, namespaceSelector: {matchLabels: {a: b}, c: d}}`,
			keeps:    map[string]any{"matchLabels": map[string]any{"a": "b"}, "c": "d"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := create(t, "ScopeInstance", tc.document)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}

			got, _, err := unstructured.NestedMap(stored.Object, "spec", "namespaceSelector")
			if tc.keeps != nil && (err != nil || !reflect.DeepEqual(got, tc.keeps)) {
				t.Errorf("%s: the selector became %v, want %v (%v)", tc.reason, got, tc.keeps, err)
			}
		})
	}
}

func TestScopeInstanceRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, document, field string
	}{
		"NoSpec": {
			reason: "what says nothing must not be taken to mean everything", field: "spec", document: `{}`,
		},
		"NoTemplate": {
			reason: "an instance of nothing", field: "spec.scopeTemplateName", document: `spec: {namespaces: [a]}`,
		},
		"EmptyTemplate": {
			reason: "an instance of nothing", field: "spec.scopeTemplateName", document: `spec: {scopeTemplateName: ""}`,
		},
		"Wildcard": {
			reason: "the whole cluster is asked for by leaving both fields out", field: "spec.namespaces[0]",
			document: `spec: {scopeTemplateName: foo, namespaces: ["*"]}`,
		},
		"EmptyName": {
			reason: "an empty name means the whole cluster elsewhere; here it means nothing", field: "spec.namespaces[0]",
			document: `spec: {scopeTemplateName: foo, namespaces: [""]}`,
		},
		"UpperCase": {
			reason: "no namespace is called so", field: "spec.namespaces[1]",
			document: `spec: {scopeTemplateName: foo, namespaces: [a, CP4I]}`,
		},
		"SelectorIsText": {
			reason: "a selector is an object", field: "spec.namespaceSelector",
			document: `spec: {scopeTemplateName: foo, namespaceSelector: "a=b"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, "ScopeInstance", tc.document)
			if got := refusedFields(t, err); len(got) == 0 || got[0] != tc.field {
				t.Errorf("%s: want %s refused, got %v", tc.reason, tc.field, got)
			}
		})
	}
}
