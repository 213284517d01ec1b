package bounds_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestTargetsTimesOperatorsCostLittle: an OperatorGroup may name any number of namespaces that do not exist, and every operator
// beside it is for all of them. Ambit stays small, and others are served. It is on the cluster of another profile than the test
// before it, so that its manager has been through nothing else.
func TestTargetsTimesOperatorsCostLittle(t *testing.T) {
	const operators, targets = 150, 60_000

	w := beds.Quiet(t, "cluster")
	evil, other, joins := w.Namespace("evil"), w.Namespace("other"), w.Namespace("joins")

	w.Make(testbed.Account(evil, "installer"), testbed.Account(other, "installer"))
	w.Grant(evil, "installs", evil, "installer", "* *")
	w.Grant(other, "installs", other, "installer", "* *")
	w.Grant(joins, "installs", other, "installer", "* *")

	group, running := testbed.GroupOf(other, "installer"), testbed.ReadsSecrets(other)
	w.Make(group, running)
	w.Succeeded(running)

	many(w, w.Client, operators, func(i int) client.Object {
		csv := testbed.ReadsSecrets(evil)
		csv.Name = fmt.Sprintf("op-%03d", i)
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = csv.Name

		return csv
	})

	hostile := testbed.GroupOf(evil, "installer")
	for i := range targets {
		hostile.Spec.TargetNamespaces = append(hostile.Spec.TargetNamespaces, fmt.Sprintf("t%05d", i))
	}

	w.Make(hostile)
	w.May(evil, "op", evil, "get secrets")

	for range 2 {
		w.Change(group, func() { group.Spec.TargetNamespaces = []string{other, joins} })
		w.May(other, "op", joins, "get secrets")
		w.Change(group, func() { group.Spec.TargetNamespaces = []string{other} })
		w.MayNot(other, "op", joins, "get secrets")
	}

	bounded(w)
	reborn(w)
	w.May(evil, "op", evil, "get secrets")
	w.Succeeded(running)
	bounded(w)
}
