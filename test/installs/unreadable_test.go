package installs_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
)

// TestUnreadableEdit: an operator that runs keeps what it may while its CSV cannot be read because of a slip in an edit, as long
// as its group lets it.
func TestUnreadableEdit(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a, b))
	op := csv(own, "op.v1", clusterPermissions("get nodes"))
	w.Make(op)
	w.succeeds(op)
	w.May(own, "op", b, "get secrets")
	w.May(own, "op", "", "get nodes")

	gaps := w.gaps(own, "op", a, "get secrets")
	version := func(number string) {
		t.Helper()

		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"version":%q}}`, number))
		obj := install.NewObject()
		obj.SetNamespace(own)
		obj.SetName(op.Name)

		if err := w.Client.Patch(t.Context(), obj, patch); err != nil {
			t.Fatal(err)
		}
	}
	version("none")
	w.Eventually("it says that it cannot be read", func() error {
		obj := install.NewObject()
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(op), obj); err != nil {
			return err
		}

		if status, _ := obj.Object["status"].(map[string]any); status["reason"] != "InvalidSpec" {
			return fmt.Errorf("status is %v", status)
		}

		return nil
	})

	// That a target is taken away is seen to: so everything else was looked at, too.
	w.Change(g, func() { g.Spec = operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{a}} })
	w.MayNot(own, "op", b, "get secrets")

	if !w.Allowed(own, "op", "", "get nodes") || !w.Allowed(own, "op", own, "get secrets") {
		t.Error("permissions went with the edit")
	}

	version("1.0.0")
	w.succeeds(op)

	if n := gaps(); n > 0 {
		t.Errorf("without permission %d times", n)
	}

	version("none")
	w.Remove(g)
	w.MayNot(own, "op", a, "get secrets")
	w.MayNot(own, "op", "", "get nodes")
}
