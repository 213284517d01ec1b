package installs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// inTarget are what the account of a group needs in a target: to install there, and to take it away again.
func inTarget() []rbacv1.PolicyRule {
	return append([]rbacv1.PolicyRule{testbed.Rule("get,list secrets"), testbed.Rule("delete roles"),
		testbed.Rule("delete rolebindings")}, fineGrained...)
}

// withoutRights takes from the account of a group what it may do in the namespace of its operators.
func withoutRights(w *world, own string) {
	w.Helper()
	w.Remove(testbed.Bind(own, "Role", "own", own, "scoped"))
	w.Eventually("the account may not tell", func() error {
		if w.AllowedIn(own, "scoped", own, "patch", "operators.coreos.com", "clusterserviceversions") {
			return errors.New("it is there")
		}

		return nil
	})
}

// TestTargetThatGoesWhileNobodyMayAnnotate: what an operator holds in a target goes with the target, though whoever administers
// the operator's namespace sees to it that no pod gets the new targets: the group's account may not annotate the
// ClusterServiceVersion any more, or is gone altogether.
func TestTargetThatGoesWhileNobodyMayAnnotate(t *testing.T) {
	beds.Together(t)

	for name, prevent := range map[string]func(w *world, own string){
		"account without rights": withoutRights,
		"account that is gone": func(w *world, own string) {
			w.Remove(testbed.Account(own, "scoped"))
			// Kinds come over watches of their own: the change of the group, which follows, could come first.
			w.complains(w.groupIn(own), "OperatorGroupServiceAccount", metav1.ConditionTrue, "ServiceAccount scoped not found")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
			g := w.scoped(own, a, b)
			w.makesGroupRoles(own)
			w.grant(own, own, "own", inTarget()...)
			w.grant(own, a, "target", inTarget()...)
			w.grant(own, b, "target", inTarget()...)

			op := csv(own, "op.v1")
			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", b, "get secrets")

			prevent(w, own)
			w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
			w.MayNot(own, "op", b, "get secrets")
			w.May(own, "op", a, "get secrets")

			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(op), op); err != nil ||
				op.Annotations["olm.targetNamespaces"] != a+","+b {
				t.Errorf("somebody could be told: %v (%v)", op.Annotations, err)
			}
		})
	}
}

// TestTargetThatGoesWhileSomebodyWritesItBack: what an operator holds in a target goes with the target, though somebody writes
// the target into the annotation of the ClusterServiceVersion again as fast as they can.
func TestTargetThatGoesWhileSomebodyWritesItBack(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a, b))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)
	w.May(own, "op", b, "get secrets")

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})

	var written atomic.Int64

	go func() {
		defer close(ended)

		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"olm.targetNamespaces":"%s,%s"}}}`, a, b)

		for ctx.Err() == nil {
			obj := scope.NewOLM(scope.KindCSV)
			obj.SetNamespace(own)
			obj.SetName(op.Name)

			if w.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch)) == nil {
				written.Add(1)
			}
		}
	}()

	writes := func(least int64) func() error {
		return func() error {
			if n := written.Load(); n < least {
				return fmt.Errorf("it was written %d times", n)
			}

			return nil
		}
	}

	w.Eventually("somebody writes it", writes(1))
	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.MayNot(own, "op", b, "get secrets")
	w.Eventually("it was written back", writes(written.Load()+1))
	stop()
	<-ended

	w.reaches(g, a)
	w.told(op, g)
}

// TestWholeClusterThatGoesWhileNobodyMayAnnotate: an operator that served the whole cluster holds what its group names and no
// more, though no pod gets the new targets, and though its ClusterServiceVersion cannot be read.
func TestWholeClusterThatGoesWhileNobodyMayAnnotate(t *testing.T) {
	beds.Together(t)

	for name, prevent := range map[string]func(w *world, own string){
		"account without rights": withoutRights,
		"unreadable": func(w *world, own string) {
			obj := scope.NewOLM(scope.KindCSV)
			obj.SetNamespace(own)
			obj.SetName("op.v1")

			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"none"}}`))
			if err := w.Client.Patch(w.Context(), obj, patch); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			own, a := w.Namespace("own"), w.Namespace("a")
			g := w.scoped(own)
			op := csv(own, "op.v1", clusterPermissions("get nodes"))

			for i, place := range install.Needs(op, own, []string{""}) {
				if place.Namespace == own {
					w.grant(own, own, "own", append(place.Rules, place.Handed...)...)
				} else {
					w.give(own, fmt.Sprintf("everywhere-%d-%s", i, own), place)
				}
			}

			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", a, "get secrets")

			prevent(w, own)
			w.Change(g, func() { g.Spec.TargetNamespaces = []string{own} })
			w.MayNot(own, "op", a, "get secrets")
			w.May(own, "op", "", "get nodes")
		})
	}
}

// TestGroupThatGoesTakesItsPermissions: where Ambit holds no rights of its own, what an operator holds goes with its group, or as
// soon as it is not known any more for which group the operator would act.
func TestGroupThatGoesTakesItsPermissions(t *testing.T) {
	beds.Together(t)

	for name, end := range map[string]func(w *world, g *operatorsv1.OperatorGroup){
		"deleted": func(w *world, g *operatorsv1.OperatorGroup) { w.Remove(g) },
		"second group": func(w *world, g *operatorsv1.OperatorGroup) {
			second := &operatorsv1.OperatorGroup{Spec: operatorsv1.OperatorGroupSpec{ServiceAccountName: "other"}}
			second.Namespace, second.Name = g.Namespace, "second"
			w.Make(testbed.Account(g.Namespace, "other"), second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			own, a := w.Namespace("own"), w.Namespace("a")
			g := w.scoped(own, a)
			w.makesGroupRoles(own)
			w.grant(own, own, "own", inTarget()...)
			w.grant(own, a, "target", inTarget()...)

			op := csv(own, "op.v1")
			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", a, "get secrets")

			end(w, g)
			w.MayNot(own, "op", a, "get secrets")
			w.MayNot(own, "op", own, "get secrets")
		})
	}
}
