package reconcile_test

import (
	"encoding/json"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManifestsOfSteps: an InstallPlan says what each of its steps wrote as the catalog has it, whichever answers were lost.
func TestManifestsOfSteps(t *testing.T) {
	t.Parallel()

	for name, lost := range map[string]string{
		"every answer arrives": "nothing", "the answer to the version is lost": "create clusterserviceversions",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", `{"targetNamespaces":["ops>"]}`)
			w.reconcileGroup()
			w.watched = ""
			w.catalog()
			w.subscribe()

			w.loses = func(what string) bool { return strings.HasPrefix(what, lost) }

			for range most {
				w.catalogOnce()
				w.knowsCatalog(w.ns(ops), "catalog")
			}

			is(w, "Subscription, InstallPlan and version", w.subscribed(), "AtLatestKnown Complete kettle.v1")

			var plans olmv1alpha1.InstallPlanList
			if err := w.client.List(t.Context(), &plans, client.InNamespace(w.ns(ops))); err != nil || len(plans.Items) != 1 {
				t.Fatalf("there are %d InstallPlans: %v", len(plans.Items), err)
			}

			for _, step := range plans.Items[0].Status.Plan {
				var written client.Object = &olmv1alpha1.ClusterServiceVersion{}
				if err := json.Unmarshal([]byte(step.Resource.Manifest), written); err != nil {
					t.Fatalf("the manifest %q of %s cannot be read: %v", step.Resource.Manifest, step.Resource.Name, err)
				}

				is(w, "the name in the manifest", written.GetName(), "kettle.v1")

				if written.GetUID() != "" || written.GetResourceVersion() != "" || len(written.GetManagedFields()) > 0 {
					t.Errorf("the manifest is not what the catalog holds: %s", step.Resource.Manifest)
				}
			}
		})
	}
}
