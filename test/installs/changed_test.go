package installs_test

import (
	"fmt"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatIsNoLongerAskedFor: what a CSV, or the one that replaces it, does not ask for any more goes from the Deployment, and
// what somebody else put beside it stays.
func TestWhatIsNoLongerAskedFor(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	op := csv(own, "op.v1", func(c *olm.ClusterServiceVersion) {
		pod := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
		pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: "OLD", Value: "x"})
		pod.Containers = append(pod.Containers, corev1.Container{Name: "proxy", Image: "example.com/proxy:1"})
	})
	w.Make(op)
	w.succeeds(op)

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}}
	w.Change(d, func() { metav1.SetMetaDataLabel(&d.ObjectMeta, "theirs", "yes") })

	w.Change(op, func() {
		pod := &op.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
		pod.Containers = pod.Containers[:1]
		pod.Containers[0].Env = pod.Containers[0].Env[:1]
	})
	w.Eventually("the Deployment has only what is asked for", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}

		containers := d.Spec.Template.Spec.Containers
		if len(containers) != 1 {
			return fmt.Errorf("%d containers", len(containers))
		}

		for _, e := range containers[0].Env {
			if e.Name == "OLD" {
				return fmt.Errorf("the environment is %+v", containers[0].Env)
			}
		}

		return nil
	})

	if d.Labels["theirs"] != "yes" {
		t.Errorf("somebody else's label is gone: %v", d.Labels)
	}
}
