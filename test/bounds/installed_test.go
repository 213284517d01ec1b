package bounds_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestForgedDeploymentsBesideAGroupCostLittle: what Ambit installed it compares in every field, and so remembers whole. Who
// wrote an object is for anybody to say: a tenant makes Deployments, each as large as can be, that look as if Ambit had
// written them. Ambit stays small, also when it begins anew, and what is installed beside them stays installed.
func TestForgedDeploymentsBesideAGroupCostLittle(t *testing.T) {
	const forged = 32

	w := beds.Quiet(t, "delegated")
	evil := w.Namespace("evil")

	group := testbed.GroupOf(evil, "installer")
	w.Make(testbed.Account(evil, "installer"), group)
	w.Grant(evil, "installs", evil, "installer", "* *")

	running := testbed.ReadsSecrets(evil)
	w.Make(running)
	w.Succeeded(running)

	mallory := w.Tenant("mallory-"+evil, evil)
	many(w, mallory, forged, func(i int) client.Object { return largeDeployment(evil, i) }, client.FieldOwner("ambit"))

	madeAgain(w, running)
	bounded(w)

	reborn(w)
	madeAgain(w, running)
	bounded(w)

	w.Within(long, "what is left out is told", func() error {
		if c := limitOf(w, group); c == nil || c.Reason != "LimitExceeded" || !strings.Contains(c.Message, " Deployments") {
			return fmt.Errorf("the group says %+v", c)
		}

		return nil
	})

	list := &appsv1.DeploymentList{}
	if err := w.Client.List(w.Context(), list, client.InNamespace(evil)); err != nil || len(list.Items) != forged+1 {
		t.Errorf("there are %d Deployments, want %d (%v)", len(list.Items), forged+1, err)
	}

	// Once there is room, everything is read again.
	for i := range list.Items {
		if list.Items[i].Name != "op" {
			w.Remove(&list.Items[i])
		}
	}

	w.Within(long, "it is well again", func() error {
		if c := limitOf(w, group); c != nil {
			return fmt.Errorf("the group says %+v", c)
		}

		return nil
	})
	w.Succeeded(running)
}

// long is how long something may take where the API server has a lot to tell.
const long = 3 * time.Minute

// reborn kills Ambit and starts it again, and waits longer until it works than where there is little to be read.
func reborn(w *testbed.World) {
	w.Helper()

	if err := errors.Join(w.Manager.Kill(), w.Manager.Start()); err != nil {
		w.Fatal(err)
	}

	w.Within(long, "Ambit works again", func() error { return w.Manager.Works("namespacescope") })
}

// limitOf is what a group says of the limits of its namespace; nil for nothing.
func limitOf(w *testbed.World, group *operatorsv1.OperatorGroup) *metav1.Condition {
	w.Helper()

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(group), group); err != nil {
		w.Fatal(err)
	}

	return meta.FindStatusCondition(group.Status.Conditions, "WithinLimits")
}

// madeAgain deletes the Deployment of an operator, and waits until it is there again: Ambit has read everything beside it by
// then. The API server has a lot to tell.
func madeAgain(w *testbed.World, running *olm.ClusterServiceVersion) {
	w.Helper()

	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: running.Namespace, Name: "op"}

	if err := w.Client.Get(w.Context(), key, d); err != nil {
		w.Fatal(err)
	}

	was := d.UID
	w.Remove(d)
	w.Within(long, "what is installed is made again", func() error {
		if err := w.Client.Get(w.Context(), key, d); err != nil {
			return err
		}

		if d.UID == was {
			return errStillThere
		}

		return nil
	})
	w.Within(long, "it runs", func() error { return w.InPhase(running, olm.CSVPhaseSucceeded) })
}

// largeDeployment is a Deployment without pods that is about as large as it can be; no two are alike. Nobody rolls it out, so
// it costs the cluster no more than its text.
func largeDeployment(namespace string, number int) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("large-%03d", number),
			Annotations: map[string]string{"note": strings.Repeat("n", 240_000)},
		},
		Spec: testbed.PodsOf("default"),
	}
	d.Spec.Paused, d.Spec.Replicas = true, new(int32(0))
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("v", 1_100_000-number)}}

	return d
}
