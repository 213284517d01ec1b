package reconcile_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManifestsOfSteps: an InstallPlan says what each of its steps wrote as the catalog has it, whichever answers were lost.
func TestManifestsOfSteps(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		// lost is a request whose answer is lost, and refused how many writes are refused after the version was created.
		lost    string
		refused int
	}{
		"every answer arrives":                             {},
		"the answer to the version is lost":                {lost: "create clusterserviceversions"},
		"nothing can be told while the version is created": {refused: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := subscribable(t)
			w.catalog()
			w.subscribe()

			w.loses = func(what string) bool { return tc.lost != "" && strings.HasPrefix(what, tc.lost) }
			created := false
			w.refuses = func(what string) int {
				if tc.refused == 0 || !created || !strings.HasPrefix(what, "patch ") {
					created = created || strings.HasPrefix(what, "create clusterserviceversions")

					return 0
				}

				tc.refused--

				return http.StatusInternalServerError
			}

			for range most {
				w.catalogOnce()
				w.knowsCatalog(w.ns(ops), "catalog")
			}

			is(w, "Subscription, InstallPlan and version", w.subscribed(), "AtLatestKnown Complete kettle.v1")

			var plans olmv1alpha1.InstallPlanList
			if err := w.client.List(t.Context(), &plans, client.InNamespace(w.ns(ops))); err != nil || len(plans.Items) != 1 {
				t.Fatalf("there are %d InstallPlans: %v", len(plans.Items), err)
			}

			is(w, "how many steps there are", len(plans.Items[0].Status.Plan), 1)

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
