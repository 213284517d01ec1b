package templates_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
)

// TestSeed applies the documents of the enhancement proposal as they were printed. They leave a service account without a
// namespace: that is told, and nothing is guessed.
func TestSeed(t *testing.T) {
	const account = "foo-service-account"

	w := begin(t)
	labelled := w.Namespace("labelled", "fooKey=barValue")
	w.MakeNamespace("foo")

	for _, document := range []string{"seed-003-scopeinstance.yaml", "seed-003-scopetemplate.yaml"} {
		if _, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", filepath.Join("testdata", document)); err != nil {
			t.Fatal(err)
		}
	}

	template := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "foo"}}
	in := &operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: "foo"}}

	for _, obj := range []client.Object{template, in} {
		reason := map[bool]string{true: "TemplatingFailed", false: "ScopingFailed"}[obj == client.Object(template)]
		w.says(obj, no, reason, "ServiceAccount fooServiceAccount: a service account needs a namespace")
	}

	w.Eventually("its ClusterRole", func() error {
		w.get(template)

		if len(template.Status.ClusterRoles) != 1 || !strings.HasPrefix(template.Status.ClusterRoles[0], "fooClusterRole-") {
			return fmt.Errorf("%v", template.Status.ClusterRoles)
		}

		return nil
	})

	// With the namespace, and a name that a service account can have, it does what the proposal says: in foo, in bar as soon
	// as that exists, and by label.
	fill := client.RawPatch(types.JSONPatchType, []byte(`[
		{"op":"replace","path":"/spec/clusterRoles/0/bindingTemplate/subjects/0/namespace","value":"foo"},
		{"op":"replace","path":"/spec/clusterRoles/0/bindingTemplate/subjects/0/name","value":"foo-service-account"}]`))
	if err := w.Client.Patch(t.Context(), template, fill); err != nil {
		t.Fatal(err)
	}

	w.May("foo", account, "foo", "watch services")
	w.May("foo", account, labelled, "patch pods")

	w.says(in, no, "ScopingFailed", "1 of 3 namespaces are not fully served: bar")

	w.MakeNamespace("bar")
	w.May("foo", account, "bar", "delete pods")
	w.says(in, yes, "ScopingSuccessful")

	if in.Status.BoundNamespaces != 3 {
		t.Errorf("status %+v", in.Status)
	}
}
