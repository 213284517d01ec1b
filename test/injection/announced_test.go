package injection_test

import (
	"strconv"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestStatusSaysBeforehandThatSomethingIsInjected: nothing but the status tells where something may have to be taken back. So it
// says so before, and a scope that is deleted in the very moment of the injection leaves nothing behind.
func TestStatusSaysBeforehandThatSomethingIsInjected(t *testing.T) {
	w := begin(t)
	w.withOLM()
	ops := w.Namespace("home")
	w.publish(csv(ops, "op.v1.0.0", "op", map[string]string{managedOperators: "op"}, "operator"))

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(olmv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))

	for range 5 {
		said := w.first(ops, &operatorv1.NamespaceScopeList{}, func(obj client.Object) bool {
			nss, is := obj.(*operatorv1.NamespaceScope)

			return is && meta.FindStatusCondition(nss.Status.Conditions, "CSVsInjected") != nil
		})
		done := w.first(ops, list, func(obj client.Object) bool { return obj.GetAnnotations()["ambit.dev/replaced"] != "" })
		nss := w.Scope(ops, withCSVs())
		injected := done()
		w.Remove(nss)

		if before := said(); before >= injected {
			t.Errorf("the status says it in version %d, and the injection is version %d", before, injected)
		}

		w.original(ops, "op.v1.0.0")
		w.Eventually("the scope goes", w.Gone(nss))
	}
}

// first watches from now on, and returns what waits for the first version of an object that is so.
func (w *world) first(namespace string, list client.ObjectList, is func(client.Object) bool) func() uint64 {
	w.Helper()

	watch, err := w.Client.Watch(w.Context(), list, client.InNamespace(namespace))
	if err != nil {
		w.Fatal(err)
	}

	w.Cleanup(watch.Stop)

	return func() uint64 {
		w.Helper()

		for event := range watch.ResultChan() {
			obj, isObject := event.Object.(client.Object)
			if !isObject || !is(obj) {
				continue
			}

			version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
			if err != nil {
				w.Fatal(err)
			}

			return version
		}

		w.Fatal("the watch ended before")

		return 0
	}
}
