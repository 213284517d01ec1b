package slow_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// hangsAboutDeployments makes an admission webhook that never answers about Deployments, in namespaces with labels, of which one
// is given.
func hangsAboutDeployments(w *testbed.World, labels map[string]string, namespace string) (client.Object, *atomic.Int64) {
	w.Helper()

	return hangs(w, labels,
		admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: testbed.PodsOf("op")})
}

// newer is the image that upgrade gives an operator.
const newer = "example.com/operator:2"

func upgrade(w *testbed.World, versions []*olm.ClusterServiceVersion) {
	for _, csv := range versions {
		w.Change(csv, func() {
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = newer
		})
	}
}

// upgraded fails while the Deployment of such an operator is not as it should be.
func upgraded(w *testbed.World, csv *olm.ClusterServiceVersion) error {
	d, name := &appsv1.Deployment{}, csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: csv.Namespace, Name: name}, d); err != nil {
		return err
	}

	if d.Spec.Template.Spec.Containers[0].Image != newer {
		return errMissing
	}

	return nil
}

// TestInstallsThatHangDelayNoRevocation: an admission webhook that never answers is asked about the Deployments of several
// ClusterServiceVersions of one namespace. What the operator of another one holds in the targets goes with that, as if the
// webhook were not there, and all that hung is installed once nobody asks it any more.
func TestInstallsThatHangDelayNoRevocation(t *testing.T) {
	const many = 12

	w := beds.Begin(t, "cluster")
	own, target := w.Namespace("own"), w.Namespace("target")
	group, goes := testbed.GroupOf(own, ""), testbed.ReadsSecrets(own)
	group.Spec.TargetNamespaces = []string{own, target}
	w.Make(group, goes)

	hanging := []*olm.ClusterServiceVersion{}
	for i := range many {
		name := fmt.Sprintf("busy-%02d", i)
		csv := testbed.ReadsSecrets(own)
		csv.Name = name + ".v1"
		strategy := &csv.Spec.InstallStrategy.StrategySpec
		strategy.Permissions[0].ServiceAccountName = name
		strategy.DeploymentSpecs = []olm.StrategyDeploymentSpec{{Name: name, Spec: testbed.PodsOf(name)}}
		hanging = append(hanging, csv)
		w.Make(csv)
	}

	for _, csv := range append([]*olm.ClusterServiceVersion{goes}, hanging...) {
		w.Succeeded(csv)
	}

	webhook, asked := hangsAboutDeployments(w, map[string]string{corev1.LabelMetadataName: own}, own)
	before := asked.Load()

	upgrade(w, hanging)

	// The first reconcile may have begun with the first change.
	w.Eventually("the webhook is asked", func() error {
		if asked.Load() < before+2 {
			return errMissing
		}

		return nil
	})

	servedBeside(w, func() { w.Remove(goes) }, func() bool { return !w.Allowed(own, "op", target, "get secrets") })

	w.Remove(webhook)
	w.Within(3*time.Minute, "what hung is installed once nobody asks the webhook", func() error {
		for _, csv := range hanging {
			if err := upgraded(w, csv); err != nil {
				return err
			}
		}

		return nil
	})
}
