package installs_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestEverythingGoesWhileAmbitIsAway: what operators hold in targets and in the cluster goes once Ambit is back, although nothing
// is left in their namespace by which it would be asked for, not even the kinds.
func TestEverythingGoesWhileAmbitIsAway(t *testing.T) {
	for name, goes := range map[string]func(w *world, all ...client.Object){
		"with what was installed": func(w *world, all ...client.Object) { w.Helper(); w.collected(all...) },
		"with the definitions":    func(w *world, _ ...client.Object) { w.Helper(); w.undefine() },
	} {
		t.Run(name, func(t *testing.T) {
			w := alone(t)
			own, target := w.Namespace("own"), w.Namespace("target")
			g := w.group(own, targets(target))
			op := csv(own, "op.v1", clusterPermissions("get nodes"), asking("v.example.com"))
			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", target, "get secrets")
			w.May(own, "op", "", "get nodes")
			w.asked(target, true)

			if err := w.Manager.Kill(); err != nil {
				t.Fatal(err)
			}

			goes(w, op, g)
			w.Reborn("namespacescope")
			w.MayNot(own, "op", target, "get secrets")
			w.MayNot(own, "op", "", "get nodes")
			w.asked(target, false)
		})
	}
}

// TestKindsThatComeAndGo: when OLM's kinds go, what operators were given for them goes, and when they come again, so does what is
// installed then. It is one manager all the time.
func TestKindsThatComeAndGo(t *testing.T) {
	w := alone(t)
	own, target := w.Namespace("own"), w.Namespace("target")
	defined := w.undefine()

	for range 2 {
		defined()
		w.Eventually("the kinds are served", func() error {
			return errors.Join(w.Client.List(w.Context(), &operatorsv1.OperatorGroupList{}),
				w.Client.List(w.Context(), scope.NewOLMList(scope.KindCSV)))
		})

		g, op := w.group(own, targets(target)), csv(own, "op.v1", clusterPermissions("get nodes"), asking("v.example.com"))
		w.Make(op)
		w.succeeds(op)
		w.May(own, "op", target, "get secrets")
		w.asked(target, true)

		defined = w.undefine()
		w.MayNot(own, "op", target, "get secrets")
		w.MayNot(own, "op", "", "get nodes")
		w.asked(target, false)

		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Fatalf("the kind is still there: %v", err)
		}
	}
}

// collected deletes objects, and returns once Kubernetes has collected the permissions that went with them.
func (w *world) collected(all ...client.Object) {
	w.Helper()

	for _, obj := range all {
		w.Remove(obj)
	}

	in := all[0].GetNamespace()

	w.Eventually("the collector is done", func() error {
		var left rbacv1.RoleBindingList
		if err := w.Client.List(w.Context(), &left, client.InNamespace(in)); err != nil {
			return err
		}

		if len(left.Items) > 0 {
			return fmt.Errorf("left is RoleBinding %s", left.Items[0].Name)
		}

		return nil
	})
}

// undefine deletes the definitions of what is installed. They are there again when the function that it returns has been called,
// and when the test ends.
func (w *world) undefine() (define func()) {
	w.Helper()

	folder := filepath.Join(embedded.Root(), "config", "crd")
	define = func() {
		if out, err := w.Cluster.Kubectl(context.WithoutCancel(w.Context()), "apply", "--server-side", "-k", folder); err != nil {
			w.Error(out, err)
		}
	}
	w.Cleanup(define)

	err := w.Cluster.Undefine(w.Context(), "clusterserviceversions.operators.coreos.com", "operatorgroups.operators.coreos.com")
	if err != nil {
		w.Fatal(err)
	}

	return define
}
