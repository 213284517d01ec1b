package cli_test

import (
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// drawFollower has a pod say that it follows a list: from then on it need not be restarted for that. No plan is about a Lease.
func (w *drawn) drawFollower() *move {
	list := one(w, defaultList, defaultList, "other-list")
	of := w.random.IntN(8)

	pods := &corev1.PodList{}
	if err := w.Client.List(w.Context(), pods, client.InNamespace(w.ops)); err != nil {
		w.Fatal(err)
	}

	if of >= len(pods.Items) || pods.Items[of].DeletionTimestamp != nil || pods.Items[of].Labels["intent"] == "" {
		return nil
	}

	pod := &pods.Items[of]
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.ops, Name: scope.FollowerLease(string(pod.UID)), Labels: map[string]string{scope.LabelFollows: scope.Follows},
		Annotations:     map[string]string{scope.AnnotationFollowed: list, scope.AnnotationTakenIn: w.takenIn(list)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
	}}

	if err := w.Client.Create(w.Context(), lease); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}

	w.history = append(w.history, fmt.Sprintf("# Pod %s follows %s\n", pod.Name, list))

	return nil
}

// takenIn is the hash of a list as it is now.
func (w *drawn) takenIn(list string) string {
	w.Helper()

	cm := &corev1.ConfigMap{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: list}, cm); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}

	return scope.TakenIn(cm.Data[scope.ListKey])
}

// takeIn has the pods that follow a list say that they serve it as it is now.
func (w *drawn) takeIn() {
	w.Helper()

	if w.ops == "" {
		return
	}

	leases := &coordinationv1.LeaseList{}
	if err := w.Client.List(w.Context(), leases, client.InNamespace(w.ops), client.HasLabels{scope.LabelFollows}); err != nil {
		w.Fatal(err)
	}

	for i := range leases.Items {
		lease := &leases.Items[i]
		before := lease.DeepCopy()
		lease.Annotations[scope.AnnotationTakenIn] = w.takenIn(lease.Annotations[scope.AnnotationFollowed])

		if lease.Annotations[scope.AnnotationTakenIn] == before.Annotations[scope.AnnotationTakenIn] {
			continue
		}

		if err := w.Client.Patch(w.Context(), lease, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			w.Error(errors.Join(errors.New("a pod cannot say what it took in"), err))
		}
	}
}

// drawOldCopies makes what IBM's operator left in a namespace: the copy of a Role and of its binding, or one of them.
func (w *drawn) drawOldCopies() *move {
	account := fmt.Sprintf("op-%d", w.random.IntN(3))
	role, binding := testbed.LegacyCopies(w.ops, one(w, account, "retired"), account, one(w, w.members...))

	if w.oneIn(4) {
		role.Name = "my-own" // Somebody copied it, labels and all.
	}

	all := []manifest{w.manifestOf(rbacAPI, "Role", role), w.manifestOf(rbacAPI, "RoleBinding", binding)}

	return &move{name: "copies of IBM's operator", objects: one(w, all, all, all[:1], all[1:])}
}
