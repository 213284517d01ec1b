package installs_test

import (
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replacing is a version of the operator that takes the place of another one.
func replacing(older, image string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		c.Spec.Replaces = older
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = image
	}
}

// TestUpgradeByTwoVersions: of two newer versions that come together, the last one takes over. Those before it go, and none of
// them is installed again over the last one.
func TestUpgradeByTwoVersions(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("chained", "Chained")
	own, target := w.Namespace("own"), w.Namespace("target")
	w.group(own, targets(target))

	first := csv(own, "op.v1", owning(crd, "Chained"))
	w.Make(first)
	w.succeeds(first)
	w.awaitCollector(own)

	gaps := w.Gaps(own, "op", "get secrets", target)
	second := csv(own, "op.v2", owning(crd, "Chained"), replacing("op.v1", "example.com/operator:2"))
	third := csv(own, "op.v3", owning(crd, "Chained"), replacing("op.v2", "example.com/operator:3"))
	w.Make(second, third)
	w.succeeds(third)

	w.gone(first, second)

	// An older one that came back would take the Deployment over again.
	w.RestIn(own)
	w.succeeds(third)

	if n, asked := gaps(); n > 0 || asked == 0 {
		t.Errorf("without permission %d of %d times", n, asked)
	}

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil ||
		d.Spec.Template.Spec.Containers[0].Image != "example.com/operator:3" || d.Labels["olm.owner"] != "op.v3" {
		t.Errorf("the Deployment is %+v (%v)", d, err)
	}
}
