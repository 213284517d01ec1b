package testbed

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collectorPatience is how long the garbage collector may take: it looks for new kinds every half minute.
const collectorPatience = 3 * time.Minute

// AwaitCollector waits until the garbage collector watches the kind of an object, which takes half a minute on a new cluster. The
// object is made for this, with an owner that is deleted at once. It disappears as soon as the collector knows of it, and only a
// watch of its kind tells the collector.
func (w *World) AwaitCollector(owned client.Object) {
	w.Helper()

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owned.GetNamespace(), Name: "owner-" + rand.String(6)}}
	w.Make(owner)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}})
	w.Make(owned)
	w.Remove(owner)

	w.Within(collectorPatience, fmt.Sprintf("the garbage collector takes %T %s", owned, owned.GetName()), w.Gone(owned))
}
