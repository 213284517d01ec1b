package catalog_test

import (
	"fmt"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConfigOfASubscription: what a Subscription says about its operator reaches the Deployment, from the start and when it
// changes, and goes when it is not said any more.
func TestConfigOfASubscription(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")
	w.offer(w.namespace, w.content(three()[0]))

	s := w.subscribe(func(s *olm.SubscriptionSpec) {
		s.Config = &olm.SubscriptionConfig{
			Env: []corev1.EnvVar{{Name: "FROM", Value: "subscription"}}, NodeSelector: map[string]string{"disk": "fast"},
		}
	})
	w.configured("subscription", "fast")

	w.Change(s, func() { s.Spec.Config = &olm.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "FROM", Value: "change"}}} })
	w.configured("change", "")

	w.Change(s, func() { s.Spec.Config = nil })
	w.configured("", "")
}

func (w *world) configured(variable, disk string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the variable is %q and the disk %q", variable, disk), func() error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "kettle"}}
		if err := w.get(d); err != nil {
			return err
		}

		got := ""

		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "FROM" {
				got = e.Value
			}
		}

		if has := d.Spec.Template.Spec.NodeSelector["disk"]; got != variable || has != disk {
			return fmt.Errorf("they are %q and %q", got, has)
		}

		return nil
	})
}
