package catalog_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// requests counts what Ambit asked of the API server since a moment about the kinds of this page, and about definitions.
func (w *world) requests(since time.Time) map[string]int {
	w.Helper()

	return w.Count(since, func(r *testbed.Request) bool {
		return slices.Contains([]string{
			"catalogsources", "subscriptions", "installplans", "customresourcedefinitions", "configmaps",
		}, r.Object.Resource) || r.Object.Resource == "clusterserviceversions" && r.Verb == "create"
	})
}

// TestCost: an install is a handful of requests, and an unchanged world costs none.
func TestCost(t *testing.T) {
	w := &world{World: beds.Alone(t, "cluster"), group: rand.String(6) + ".example.com"}
	w.namespace = w.Namespace("subscribed")
	g := w.own("")
	w.offer(w.namespace, w.content(three()...))
	w.Eventually("the catalog is read", func() error {
		source := &olm.CatalogSource{}
		source.Namespace, source.Name = w.namespace, sourceName

		if err := w.get(source); err != nil {
			return err
		}

		if source.Status.GRPCConnectionState == nil {
			return fmt.Errorf("it is %+v", source.Status)
		}

		return nil
	})
	// An InstallPlan that has to wait for its group would cost more.
	w.Eventually("the group has its namespaces", func() error {
		if err := w.get(g); err != nil {
			return err
		}

		if len(g.Status.Namespaces) == 0 {
			return fmt.Errorf("it is %+v", g.Status)
		}

		return nil
	})
	w.Rest(time.Now())

	began := time.Now()
	s := w.subscribe()
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v3")
	w.Eventually("the operator runs", func() error {
		csv := w.csv("kettle.v3")
		if err := w.get(csv); err != nil {
			return err
		}

		if csv.Status.Phase != olm.CSVPhaseSucceeded {
			return fmt.Errorf("it is %s", csv.Status.Phase)
		}

		return nil
	})
	w.Rest(began)

	want := map[string]int{
		"list catalogsources": 1, "list configmaps": 1, // whether the catalog is still the one that is known
		"create installplans": 1, "create clusterserviceversions": 1,
		"patch installplans/status":      2, // before the steps are taken, and after that
		"list customresourcedefinitions": 1, "create customresourcedefinitions": 1, "patch subscriptions/status": 2,
	}
	if got := w.requests(began); !maps.Equal(got, want) {
		t.Errorf("an install cost %v, not %v", got, want)
	}

	rested := time.Now()
	w.Rest(rested)

	if got := w.requests(rested); len(got) > 0 {
		t.Errorf("an unchanged world cost %v", got)
	}
}
