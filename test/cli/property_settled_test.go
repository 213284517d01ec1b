package cli_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// settled waits until what runs is what is asked for, and takes from operators how long their next restart waits. That doubles
// with each move that comes soon after the one before, so that on a fast machine it would outgrow every patience.
func (w *drawn) settled() {
	w.Helper()

	for _, namespace := range []string{w.ops, w.own, w.rivals} {
		if namespace == "" || w.isEnding(namespace) {
			continue
		}

		if namespace != embedded.Namespace {
			w.Running(namespace)
		}

		w.Eventually("what goes in "+namespace+" has gone, or is held", func() error { return w.released(namespace) })
		w.podsRun(namespace)
		w.Eventually("the pods of sets in "+namespace+" run", func() error { return w.setsRun(namespace) })
		w.forget(namespace)
	}
}

// released complains about scopes that are being deleted, and of which Ambit neither let go nor said why it does not.
func (w *drawn) released(namespace string) error {
	var errs []error

	for _, apiVersion := range []string{scopeAPI, legacyAPI} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, "NamespaceScopeList"))

		if err := w.Client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}

		for i := range list.Items {
			u := &list.Items[i]
			observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")

			if u.GetDeletionTimestamp() != nil && observed != u.GetGeneration() {
				errs = append(errs, fmt.Errorf("NamespaceScope %s is being deleted", u.GetName()))
			}
		}
	}

	return errors.Join(errs...)
}

// podsRun waits until the pods that no workload made run: what did not begin yet is not restarted.
func (w *drawn) podsRun(namespace string) {
	w.Helper()
	w.Eventually("the pods of "+namespace+" run", func() error {
		var pods corev1.PodList
		if err := w.Client.List(w.Context(), &pods, client.InNamespace(namespace)); err != nil {
			return err
		}

		for i := range pods.Items {
			if p := &pods.Items[i]; isBarePod(p) && p.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s", p.Name, p.Status.Phase)
			}
		}

		return nil
	})
}

func (w *drawn) forget(namespace string) {
	w.Helper()

	forget := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {%q: null}}}`, scope.AnnotationRestartWait))

	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))

		if err := w.Client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			w.Fatal(err)
		}

		for i := range list.Items {
			if d := &list.Items[i]; d.Annotations[scope.AnnotationRestartWait] != "" {
				d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))

				if err := w.Client.Patch(w.Context(), d, forget); err != nil {
					w.Fatal(err)
				}
			}
		}
	}
}

// exists says whether a namespace is there and stays.
func (w *drawn) exists(namespace string) bool {
	ns := &corev1.Namespace{}

	return w.Client.Get(context.Background(), client.ObjectKey{Name: namespace}, ns) == nil && ns.DeletionTimestamp == nil
}
