package attacks_test

import (
	"errors"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestDeploymentsThatLookLikeOLM: a tenant makes Deployments that are called as OLM's own are, and an operator keeps nothing for
// that.
func TestDeploymentsThatLookLikeOLM(t *testing.T) {
	w := begin(t, "cluster")
	ops, member, mine := w.Namespace("olm-home"), w.Namespace("member"), w.Namespace("olm")

	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{ops, member}},
	}
	csv := testbed.ReadsSecrets(ops)
	w.Make(group, csv)
	w.May(ops, "op", member, "get secrets")

	user := w.Tenant("mallory-"+mine, mine)

	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: name, Labels: map[string]string{"app": name}}}
		d.Spec = testbed.PodsOf("default")
		d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = name, name

		if err := user.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}

		w.Eventually(name+" of the tenant runs", func() error {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil || d.Status.ReadyReplicas == 1 {
				return err
			}

			return errMissing
		})
	}

	w.Change(group, func() { group.Spec.TargetNamespaces = []string{ops} })
	w.MayNot(ops, "op", member, "get secrets")
	w.May(ops, "op", ops, "get secrets")
	w.Remove(group)
	w.MayNot(ops, "op", ops, "get secrets")
	w.Eventually("Ambit goes on serving", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
			return err
		}

		if csv.Status.Reason != olm.CSVReasonNoOperatorGroup {
			return errors.New(string(csv.Status.Phase + " " + olm.ClusterServiceVersionPhase(csv.Status.Reason)))
		}

		return nil
	})
}
