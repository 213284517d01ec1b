package reconcile_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployments are those of the only ClusterServiceVersion.
func (w *world) deployments() []any {
	w.Helper()

	all, _, err := unstructured.NestedSlice(w.csvs()[0].Object, "spec", "install", "spec", "deployments")
	if err != nil {
		w.Fatal(err)
	}

	return all
}

// redeploy changes the deployments of the only ClusterServiceVersion, as an author may write them and no Go type does.
func (w *world) redeploy(change func([]any) []any) {
	w.Helper()

	csv := w.csvs()[0]
	changed := change(w.deployments())
	if err := unstructured.SetNestedSlice(csv.Object, changed, "spec", "install", "spec", "deployments"); err != nil {
		w.Fatal(err)
	}

	if err := w.client.Update(w.Context(), &csv, client.FieldOwner("author")); err != nil {
		w.Fatal(err)
	}

	w.touch(&csv)
}

// TestDeploymentsThatNoGoTypeWrites injects into what the definition of ClusterServiceVersions allows.
func TestDeploymentsThatNoGoTypeWrites(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.packaged("operators=op", "", nil)
	w.redeploy(func(all []any) []any {
		unstructured.RemoveNestedField(all[0].(map[string]any), "spec", "template", "metadata")

		return all
	})

	w.scope(injecting)
	w.settleWithCSVs()
	is(w, "a template without metadata", w.deploys(), reading)
	is(w, "CSVsInjected", w.condition("scope", "CSVsInjected"), injected)

	w.respec(inert)
	w.settleWithCSVs()
	is(w, "what was injected is taken back", w.deploys(), published)
}

// TestDeploymentsOfOneName: what is remembered of one would be taken for what is remembered of the other.
func TestDeploymentsOfOneName(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.packaged("operators=op", "mine", nil)
	w.redeploy(func(all []any) []any { return append(all, all[0]) })

	w.scope(injecting)
	w.settleWithCSVs()
	is(w, "nothing is injected", w.deploys(), published+" WATCH_NAMESPACE=mine")
	is(w, "CSVsInjected", w.condition("scope", "CSVsInjected"), "False InjectionFailed")

	if message := w.messageOn("scope", "CSVsInjected"); !strings.Contains(message, "op.v1") || !strings.Contains(message, "name") {
		t.Errorf("it does not say what is wrong: %s", message)
	}
}
