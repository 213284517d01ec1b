package installs_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// TestNoTargetThatExists: an operator none of whose targets is there is told of them all the same. Its pods would otherwise read
// an empty list, which means all namespaces.
func TestNoTargetThatExists(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	typo := "typo-" + own
	g := w.group(own, targets(typo))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)
	w.reaches(g, typo)
	w.told(op, g)

	d := &appsv1.Deployment{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: own, Name: "op"}, d); err != nil ||
		d.Generation != 1 || d.Spec.Template.Annotations["olm.targetNamespaces"] != typo {
		t.Errorf("the Deployment is of generation %d, and its pods read %v (%v)", d.Generation, d.Spec.Template.Annotations, err)
	}
}

// TestNarrowedToNothing: when the only target that is there, or all namespaces, give way to one that is not there, the operator
// may do nothing any more in what was taken away.
func TestNarrowedToNothing(t *testing.T) {
	for name, before := range map[string]func(target string) operatorsv1.OperatorGroupSpec{
		"one": func(target string) operatorsv1.OperatorGroupSpec { return targets(target) },
		"all": func(string) operatorsv1.OperatorGroupSpec { return operatorsv1.OperatorGroupSpec{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			own, target := w.Namespace("own"), w.Namespace("target")
			g := w.group(own, before(target))
			op := csv(own, "op.v1")
			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", target, "get secrets")

			w.Change(g, func() { g.Spec.TargetNamespaces = []string{"typo-" + own} })
			w.MayNot(own, "op", target, "get secrets")
			w.reaches(g, "typo-"+own)
			w.told(op, g)
			w.May(own, "op", own, "get secrets")
		})
	}
}
