package live_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	tenant            = "tenant@example.com"
	takenInAnnotation = scope.AnnotationTakenIn

	stop = syscall.SIGSTOP
	goOn = syscall.SIGCONT
	// flood is how many Greetings a tenant makes, and goes on writing, so that the operator's hook has much to do.
	flood = 300
)

// newLease is what a pod that follows writes, or whoever pretends to be one.
func newLease(namespace, podUID, pod, list string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: scope.FollowerLease(podUID), Labels: map[string]string{scope.LabelFollows: scope.Follows},
		Annotations:     map[string]string{scope.AnnotationFollowed: listName, takenInAnnotation: scope.TakenIn(list)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID(podUID)}},
	}}
}

// TestTenantsOfAMemberAndTheHandshake: whoever administers a member, its Greetings too, can neither say for the operator what it
// has taken in nor keep its permissions beyond the grace time, whatever it takes the operator to let go.
func TestTenantsOfAMemberAndTheHandshake(t *testing.T) {
	w := begin(t)
	a, b := w.member("a"), w.member("b")
	w.members(a, b)
	w.served(b, hello)
	w.settle()
	w.administers(b)

	as := w.As(tenant, "system:authenticated")
	pod := &corev1.Pod{}
	w.must(w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.ops, Name: w.pod}, pod))

	w.cannotSpeakFor(as, pod)

	// In the member itself, anything may be said. The operator is stopped, so that nobody else says that it let go.
	w.must(w.kubelet.Signal(w.pod, stop))
	w.must(as.Create(t.Context(), newLease(b, string(pod.UID), pod.Name, a+","+w.ops)))

	quiet := w.floods(as, b)

	copies := w.copies(b)
	for i := range copies {
		w.must(as.Patch(t.Context(), &copies[i], client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":["example.com/mine"]}}`))))
	}

	w.members(a)
	w.listed(a + "," + w.ops)

	begun := time.Now()

	// What comes later reaches the member that stays, so Ambit has taken in what the tenant said before.
	w.Grant(w.ops, "later", w.ops, operatorName, "get services")
	w.May(w.ops, operatorName, a, "get services")

	if !w.works(b) {
		t.Error("the permissions went by what a tenant said")
	}

	// From here the operator lets go of what the tenant made and goes on writing.
	w.must(w.kubelet.Signal(w.pod, goOn))
	w.revokedIn(b)

	took := time.Since(begun)
	t.Logf("permissions went %s after the list forgot the namespace", took.Round(time.Millisecond))

	if took > 2*grace {
		t.Errorf("a tenant kept them beyond the grace time of %s", grace)
	}

	// Nobody else waits for it.
	quiet()

	c := w.member("c")
	w.members(a, c)
	w.served(c, hello)
	w.Within(30*time.Second, "the operator has let go", func() error { return w.tookIn(w.list()) })
	w.freed(b)
}

// floods makes Greetings with the operator's finalizer and writes all of them, again and again, until the caller has it end.
func (w *world) floods(as client.Client, namespace string) (quiet func()) {
	w.Helper()

	names := make([]string, flood)

	for i := range names {
		g := greeting(namespace, fmt.Sprintf("flood-%03d", i))
		g.SetFinalizers([]string{finalizer})
		w.must(as.Create(w.Context(), g))

		names[i] = g.GetName()
	}

	ctx, cancel := context.WithCancel(w.Context())

	var writer sync.WaitGroup

	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"},"finalizers":[%q]}}`, i, finalizer)
			_ = as.Patch(ctx, greeting(namespace, names[i%flood]), client.RawPatch(types.MergePatchType, patch))
		}
	})

	quiet = sync.OnceFunc(func() {
		cancel()
		writer.Wait()
	})
	w.Cleanup(quiet)

	return quiet
}

// administers makes the tenant whoever may do everything in a namespace that its owner may.
func (w *world) administers(namespace string) {
	w.Helper()

	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: tenant}}
	w.Make(
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "more"}, Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"*"}, APIGroups: []string{greetingKind.Group, "coordination.k8s.io"}, Resources: []string{"*"}},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "more"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "more"},
		},
	)
	w.Eventually("the tenant administers "+namespace, func() error {
		return w.As(tenant, "system:authenticated").List(w.Context(), &rbacv1.RoleBindingList{}, client.InNamespace(namespace))
	})
}

// cannotSpeakFor holds that a tenant reaches nothing of what the handshake believes.
func (w *world) cannotSpeakFor(as client.Client, pod *corev1.Pod) {
	w.Helper()

	lease := newLease(w.ops, string(pod.UID), pod.Name, "")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: operatorName}}
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: listName}}
	change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+takenInAnnotation+`":"x"}}}`))

	for what, try := range map[string]func(context.Context) error{
		"changing its Lease": func(ctx context.Context) error { return as.Patch(ctx, lease, change) },
		"making another": func(ctx context.Context) error {
			return as.Create(ctx, newLease(w.ops, "00000000-0000-0000-0000-000000000000", "other", ""))
		},
		"changing the list": func(ctx context.Context) error { return as.Patch(ctx, list, change) },
		"changing its pod":  func(ctx context.Context) error { return as.Patch(ctx, pod.DeepCopy(), change) },
		"asking for its token": func(ctx context.Context) error {
			return as.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		},
	} {
		if err := try(w.Context()); !apierrors.IsForbidden(err) {
			w.Errorf("%s: %v", what, err)
		}
	}
}

// freed holds that no copy grants anything that a tenant keeps by a finalizer.
func (w *world) freed(namespace string) {
	w.Helper()
	w.Eventually("no copy in "+namespace+" names anybody", func() error {
		for _, copied := range w.copies(namespace) {
			if len(copied.Subjects) > 0 {
				return errors.New(copied.Name)
			}
		}

		return nil
	})
}

func namesIn(list string) []string { return strings.Split(list, ",") }
