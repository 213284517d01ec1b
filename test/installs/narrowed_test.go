package installs_test

import (
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
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

// TestNarrowedWhileReplaced: a target that goes is taken from a version that runs on because the newer one cannot be installed
// yet, and from one that waits for something itself.
func TestNarrowedWhileReplaced(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a, b))
	old := csv(own, "op.v1")
	w.Make(old)
	w.succeeds(old)
	w.May(own, "op", b, "get secrets")

	newer := csv(own, "op.v2", owning("absents.example.com", "Absent"))
	newer.Spec.Replaces = old.Name
	w.Make(newer)
	w.becomes(old, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.MayNot(own, "op", b, "get secrets")
	w.May(own, "op", a, "get secrets")
	w.becomes(old, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced)

	w.Remove(newer)
	w.succeeds(old)
	w.reaches(g, a)
	w.told(old, g)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a, b} })
	w.May(own, "op", b, "get secrets")
	w.reaches(g, a, b)
	w.told(old, g)
	w.Change(old, func() { owning("absents.example.com", "Absent")(old) })
	w.becomes(old, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet)
	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.MayNot(own, "op", b, "get secrets")
	w.May(own, "op", a, "get secrets")
}
