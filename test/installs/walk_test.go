package installs_test

import (
	"fmt"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func none() *admissionv1.SideEffectClass {
	class := admissionv1.SideEffectClassNone

	return &class
}

// awaitCollector waits until the garbage collector watches ClusterServiceVersions.
func (w *world) awaitCollector(namespace string) {
	w.Helper()

	collected := csv(namespace, "collected")
	collected.Labels = map[string]string{olm.CopiedLabelKey: "elsewhere"} // So that Ambit leaves it alone.
	w.AwaitCollector(collected)
}

func each(list client.ObjectList, do func(client.Object)) {
	// The items of a typed list are of different types; meta knows how to walk them.
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		if o, ok := obj.(client.Object); ok {
			do(o)
		}

		return nil
	})
}

func (w *world) gone(objects ...client.Object) {
	w.Helper()

	for _, obj := range objects {
		w.Eventually(fmt.Sprintf("%T %s goes", obj, obj.GetName()), w.Gone(obj))
	}
}
