package installs_test

import (
	"errors"
	"fmt"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRevokedWhileOLMServes: what Ambit made is taken back when OLM serves these kinds by now, also after Ambit began anew beside
// it; and nothing else is done to them.
func TestRevokedWhileOLMServes(t *testing.T) {
	w := alone(t)
	ops, member, other := w.Namespace("own"), w.Namespace("member"), w.Namespace("other")
	group := w.group(ops, targets(ops, member, other))
	csv := csv(ops, "op.v1")
	w.Make(csv)
	w.succeeds(csv)
	w.May(ops, "op", member, "get secrets")
	w.May(ops, "op", other, "get secrets")

	began := w.olm("olm-operator")

	later := w.group(w.Namespace("later"), targets(member))

	w.Change(group, func() { group.Spec.TargetNamespaces = []string{ops, member} })
	w.MayNot(ops, "op", other, "get secrets")
	w.May(ops, "op", member, "get secrets")

	w.Reborn("operatorgroup")
	w.Change(csv, func() { csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = []string{"list"} })
	w.MayNot(ops, "op", member, "get secrets")
	w.Remove(group)
	w.MayNot(ops, "op", ops, "list secrets")

	err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(csv), csv)
	if err != nil || csv.Status.Phase != olm.CSVPhaseSucceeded {
		t.Errorf("what OLM says of a ClusterServiceVersion is nobody else's: %+v, %v", csv.Status, err)
	}

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(later), later); err != nil || len(later.Status.Namespaces) > 0 {
		t.Errorf("a group that OLM serves has a status of Ambit's: %+v, %v", later.Status, err)
	}

	w.Remove(began)
	w.Eventually("without OLM Ambit goes on", func() error {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(later), later)
		if err == nil && len(later.Status.Namespaces) != 1 {
			err = fmt.Errorf("its status is %+v", later.Status)
		}

		return err
	})
}

// olm makes one of OLM's own Deployments, and waits until Ambit has seen it.
func (w *world) olm(name string) *appsv1.Deployment {
	w.Helper()

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name, Labels: map[string]string{"app": name}}}
	d.Spec = deployment("default")
	w.MakeNamespace(d.Namespace)
	w.Make(d)
	w.Eventually("Ambit knows of "+name, func() error {
		if w.Logged(`controllersOfOLM=["olm/`+name+`"]`) == 0 {
			return errors.New("its log says nothing of it")
		}

		return nil
	})

	return d
}
