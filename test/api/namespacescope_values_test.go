package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

func TestNamespaceScopeDefaults(t *testing.T) {
	client := scopeClient(t)

	defaults := v1.NamespaceScopeSpec{
		ConfigmapName: v1.DefaultConfigmapName,
		RestartLabels: map[string]v1.LabelValue{v1.DefaultRestartLabel: v1.DefaultRestartLabelValue},
	}
	with := func(change func(*v1.NamespaceScopeSpec)) v1.NamespaceScopeSpec {
		spec := *defaults.DeepCopy()
		change(&spec)

		return spec
	}

	for name, tc := range map[string]struct {
		reason string
		object string
		want   v1.NamespaceScopeSpec
	}{
		"NoSpec": {
			reason: "a scope without a spec has the defaults of its fields",
			object: `{}`,
			want:   defaults,
		},
		"Null": {
			reason: "null is a field left out",
			object: `spec: {configmapName: null, restartLabels: null}`,
			want:   defaults,
		},
		"Members": {
			reason: "order and duplicates are kept as written; the compiler sorts",
			object: `spec: {namespaceMembers: [b, a, b]}`,
			want:   with(func(s *v1.NamespaceScopeSpec) { s.NamespaceMembers = []string{"b", "a", "b"} }),
		},
		"InjectorPresent": {
			reason: "as in IBM's CRD, the object around enable turns it on",
			object: `spec: {csvInjector: {}, workloadInjector: {}}`,
			want: with(func(s *v1.NamespaceScopeSpec) {
				s.CSVInjector = &v1.Injector{Enable: new(true)}
				s.WorkloadInjector = &v1.WorkloadInjector{
					Enable: new(true), Variable: new("WATCH_NAMESPACE"), Conflicts: v1.ReportConflicts,
				}
			}),
		},
		"InjectorOff": {
			reason: "an explicit false is not a default",
			object: `spec: {csvInjector: {enable: false}}`,
			want:   with(func(s *v1.NamespaceScopeSpec) { s.CSVInjector = &v1.Injector{Enable: new(false)} }),
		},
		"OwnRestartLabels": {
			reason: "the default replaces nothing and is not merged in",
			object: `spec: {restartLabels: {app: x}}`,
			want:   with(func(s *v1.NamespaceScopeSpec) { s.RestartLabels = map[string]v1.LabelValue{"app": "x"} }),
		},
		"EmptyRestartLabels": {
			reason: "the API server keeps an empty object; that it means the default is the compiler's to say",
			object: `spec: {restartLabels: {}}`,
			want:   with(func(s *v1.NamespaceScopeSpec) { s.RestartLabels = map[string]v1.LabelValue{} }),
		},
		"License": {
			reason: "the licence block is stored as it is",
			object: `spec: {license: {accept: true, license: L-1, use: production, key: k}}`,
			want: with(func(s *v1.NamespaceScopeSpec) {
				s.License = &v1.LicenseAcceptance{Accept: true, License: "L-1", Use: "production", Key: "k"}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope, err := dryRun(t, client, "Strict", tc.object)
			if err != nil {
				t.Fatalf("%s\nrefused: %v", tc.reason, err)
			}

			if !reflect.DeepEqual(scope.Spec, tc.want) {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, asJSON(t, scope.Spec), asJSON(t, tc.want))
			}
		})
	}
}

// The JSON is written as the API server writes it: without spaces, keys in order.
func TestNamespaceScopeSelectorIsKept(t *testing.T) {
	client := scopeClient(t)

	for name, tc := range map[string]struct {
		reason   string
		selector string
	}{
		"Labels": {
			reason:   "the form of Kubernetes",
			selector: `{"matchLabels":{"cool.io/prod":"true"}}`,
		},
		"Expressions": {
			reason:   "the form of Kubernetes",
			selector: `{"matchExpressions":[{"key":"tier","operator":"In","values":["gold","silver"]}]}`,
		},
		"Shorthand": {
			reason:   "plain labels as keys; pruning them would leave an empty selector",
			selector: `{"cool.io/prod":"true","tier":"gold"}`,
		},
		"Mixed": {
			reason:   "the API accepts it, and status says that it cannot be read",
			selector: `{"cool.io/prod":"true","matchLabels":{"tier":"gold"}}`,
		},
		"Unreadable": {
			reason:   "so is whatever else may stand there",
			selector: `{"matchExpressions":"tier in (gold)","tier":1}`,
		},
		"Empty": {
			reason:   "an empty selector is not the same as none: it selects nothing and is reported",
			selector: `{}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope, err := dryRun(t, client, "Strict", `spec: {namespaceSelector: `+tc.selector+`}`)
			if err != nil {
				t.Fatalf("%s\nrefused: %v", tc.reason, err)
			}

			if scope.Spec.NamespaceSelector == nil {
				t.Fatalf("%s\nthe selector is gone", tc.reason)
			}

			if got := string(scope.Spec.NamespaceSelector.Raw); got != tc.selector {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.selector)
			}

			if got := asJSON(t, scope.Spec.NamespaceSelector); got != tc.selector {
				t.Errorf("%s\nwritten back as %s\nwant            %s", tc.reason, got, tc.selector)
			}
		})
	}
}

func TestNamespaceScopeStatusIsKept(t *testing.T) {
	client := scopeClient(t)
	namespace := testcluster.Namespace(t, testcluster.Config(t), "api-status")

	scope := &v1.NamespaceScope{}
	if err := client.Post().Namespace(namespace).Resource(scopes).
		Body(scopeJSON(t, membersObject(5000))).Do(t.Context()).Into(scope); err != nil {
		t.Fatalf("storing a scope of 5,000 members: %v", err)
	}

	want := v1.NamespaceScopeStatus{
		ObservedGeneration: 1,
		ValidatedMembers:   scope.Spec.NamespaceMembers,
		FailedMembers: []v1.FailedMember{
			{Namespace: "gone", Reason: "NamespaceNotFound", Message: "the namespace does not exist"},
			{Namespace: "silent", Reason: "NamespaceTerminating"},
		},
		UnprojectedRoles:   []string{"gone/reader: may not be projected"},
		ManagedCSVList:     []string{"my-operator1"},
		PatchedCSVList:     []string{"my-operator1"},
		ManagedWebhookList: []string{"my-operator2"},
		PatchedWebhookList: []string{"my-operator2"},
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Reconciled", Message: "all 5,001 members are served",
			ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		}},
	}
	scope.Status = want

	if err := client.Put().Namespace(namespace).Resource(scopes).Name(scope.Name).SubResource("status").
		Param("fieldValidation", "Strict").
		Body(scope).Do(t.Context()).Into(&v1.NamespaceScope{}); err != nil {
		t.Fatalf("writing the status: %v", err)
	}

	stored := &v1.NamespaceScope{}
	if err := client.Get().Namespace(namespace).Resource(scopes).Name(scope.Name).Do(t.Context()).Into(stored); err != nil {
		t.Fatal(err)
	}

	if !reflect.DeepEqual(stored.Status, want) {
		t.Errorf("every field of the status has to survive\ngot  %s\nwant %s", asJSON(t, stored.Status), asJSON(t, want))
	}

	if stored.Generation != 1 {
		t.Errorf("a status is not a change of what is wanted, but the generation went from 1 to %d", stored.Generation)
	}
}

// The documents are those of IBM's README, with their comments.
func TestNamespaceScopeSamplesApply(t *testing.T) {
	client := scopeClient(t)

	for name, want := range map[string][]string{
		"common-service": {"cp4i", "default"},
		"my-operator":    {"my-operand-tenant1", "my-operand-tenant1"},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := os.ReadFile(filepath.Join("testdata", "seed-000-"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}

			scope := &v1.NamespaceScope{}
			if err := client.Patch(types.ApplyYAMLPatchType).Namespace("default").Resource(scopes).Name(name).
				Param("dryRun", "All").
				Param("fieldManager", "kubectl").
				Param("fieldValidation", "Strict").
				Body(document).Do(t.Context()).Into(scope); err != nil {
				t.Fatalf("resources written for IBM's operator apply unchanged; refused: %v", err)
			}

			if !reflect.DeepEqual(scope.Spec.NamespaceMembers, want) {
				t.Errorf("got members %q, want %q", scope.Spec.NamespaceMembers, want)
			}

			if scope.Spec.CSVInjector == nil || !*scope.Spec.CSVInjector.Enable {
				t.Errorf("got csvInjector %s, want it on", asJSON(t, scope.Spec.CSVInjector))
			}
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()

	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	return string(raw)
}
