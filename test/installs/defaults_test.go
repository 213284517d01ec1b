package installs_test

import (
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestDefaultsAreNoDrift: what the API server fills in is not written again, whatever else happens to the CSV.
func TestDefaultsAreNoDrift(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	op := csv(own, "op.v1", func(c *olm.ClusterServiceVersion) {
		container := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
		container.Ports = []corev1.ContainerPort{{ContainerPort: 8081}}
		container.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8081)},
		}}
		container.ReadinessProbe = container.LivenessProbe.DeepCopy()
		container.ReadinessProbe.PeriodSeconds = 7
	})
	w.Make(op)
	w.succeeds(op)

	began := time.Now()
	w.Change(op, func() { metav1.SetMetaDataLabel(&op.ObjectMeta, "touched", "yes") })
	w.RestIn(own)

	before := 0

	for _, r := range w.Requests() {
		if r.Object.Namespace != own || !isWrite(r.Verb) || r.Object.Resource == "events" {
			continue
		}

		if r.Received.After(began) {
			t.Errorf("written although nothing changed: %s", r.String())
		} else {
			before++
		}
	}

	if before == 0 {
		t.Error("the test saw nothing of the install")
	}
}
