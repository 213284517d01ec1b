package installs_test

import (
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func none() *admissionv1.SideEffectClass {
	class := admissionv1.SideEffectClassNone

	return &class
}

// awaitCollector waits until the garbage collector has heard of ClusterServiceVersions, which takes it half a minute on a new
// cluster.
func (w *world) awaitCollector(namespace string) {
	w.Helper()

	owner := csv(namespace, "owner")
	owner.Labels = map[string]string{"olm.copiedFrom": "elsewhere"}
	w.Make(owner)

	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owned"}}
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: olm.SchemeGroupVersion.String(), Kind: "ClusterServiceVersion", Name: owner.Name, UID: owner.UID,
	}}
	w.Make(owned)
	w.Remove(owner)

	for range 50 {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(owned), owned); apierrors.IsNotFound(err) {
			return
		}

		time.Sleep(time.Second)
	}

	w.gone(owned)
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
