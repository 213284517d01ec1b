package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// TestKilledWhileInstalling: Ambit is killed again and again while it upgrades from version to version. It goes on from what is
// there, and makes nothing twice.
func TestKilledWhileInstalling(t *testing.T) {
	const versions = 12

	w := &world{World: beds.Alone(t, "cluster"), group: rand.String(6) + ".example.com"}
	w.namespace = w.Namespace("subscribed")
	w.own("")

	var (
		all  []version
		want []string
	)

	for i := range versions {
		v := version{name: fmt.Sprintf("kettle.v%02d", i), number: fmt.Sprintf("%d.0.0", i)}
		if i > 0 {
			v.replaces = all[i-1].name
		}

		all, want = append(all, v), append(want, v.name)
	}

	w.offer(w.namespace, w.content(all...))

	s := w.subscribe(starting(want[0]))
	newest := want[versions-1]

	for life := range 20 {
		time.Sleep(time.Duration(rand.IntnRange(0, 600)) * time.Millisecond)

		if err := w.get(s); err != nil {
			t.Fatal(err)
		}

		if s.Status.InstalledCSV == newest {
			t.Logf("it took %d lives", life+1)

			break
		}

		t.Logf("life %d ends with %q installed", life+1, s.Status.InstalledCSV)
		w.Reborn("catalog")
	}

	// On a busy machine, the lives were too short for most of it.
	w.Within(5*time.Minute, "all versions are installed", func() error {
		if err := w.get(s); err != nil || s.Status.InstalledCSV == newest {
			return err
		}

		return fmt.Errorf("it is %+v", s.Status)
	})
	w.state(s, olm.SubscriptionStateAtLatest, newest)
	w.plan(s, olm.InstallPlanPhaseComplete)

	if got := w.plans(); !slices.Equal(got, want) {
		t.Errorf("the InstallPlans are for %v, not %v", got, want)
	}

	w.Eventually("every InstallPlan is complete", func() error {
		list := &olm.InstallPlanList{}
		if err := w.Client.List(w.Context(), list); err != nil {
			return err
		}

		for i := range list.Items {
			if ip := &list.Items[i]; ip.Namespace == w.namespace && ip.Status.Phase != olm.InstallPlanPhaseComplete {
				return fmt.Errorf("%s for %v is %s", ip.Name, ip.Spec.ClusterServiceVersionNames, ip.Status.Phase)
			}
		}

		return nil
	})
}
