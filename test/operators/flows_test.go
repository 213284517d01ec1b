package operators_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// patience is for an operator that waits for its lease, after Ambit waited before it restarted it.
	patience = 4 * time.Minute
	// only is the name of the one resource that a namespace has.
	only = "only"
)

// member makes a namespace with a resource, whose owner lets Ambit work there for the scope.
func (w *world) member() string {
	w.Helper()

	namespace := w.user()
	if w.byAuthorization {
		w.ambit("authorize", namespace, "--to", w.ops, "--grant-only")
	}

	return namespace
}

// user makes a namespace in which somebody asks for what the operator makes.
func (w *world) user() string {
	w.Helper()

	namespace := w.Namespace("user")
	if w.op.beside != nil {
		w.Make(w.op.beside(namespace, only))
	}

	w.Make(w.resource(namespace, 1))

	return namespace
}

func (w *world) resource(namespace string, size int64) *unstructured.Unstructured {
	o := object("", "", namespace, only)
	o.SetGroupVersionKind(w.op.resource)
	o.Object["spec"] = w.op.spec(size)

	return o
}

// resize asks for another size.
func (w *world) resize(namespace string, size int64) {
	w.Helper()

	o := w.resource(namespace, size)
	w.Change(o, func() { o.Object["spec"] = w.op.spec(size) })
}

// size is what the operator has made of the resource of a namespace; 0 while it has made nothing.
func (w *world) size(namespace string) (int64, error) {
	made := w.op.made(namespace, only)
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(made), made); err != nil {
		return 0, client.IgnoreNotFound(err)
	}

	size, _, err := unstructured.NestedInt64(made.Object, w.op.sized...)

	return size, err
}

// served waits until the operator has done what was asked for.
func (w *world) served(namespace string, want int64) {
	w.Helper()
	w.Within(patience, "the resource of "+namespace+" is served", func() error {
		size, err := w.size(namespace)
		if err == nil && size != want {
			err = fmt.Errorf("its size is %d, not %d", size, want)
		}

		return err
	})
}

// still holds that the operator has made something of a size, and nothing else.
func (w *world) still(namespace string, want int64) {
	w.Helper()

	if size, err := w.size(namespace); err != nil || size != want {
		w.Errorf("what the operator made in %s has the size %d, not %d (%v)", namespace, size, want, err)
	}
}

// adds has namespaces join.
func (w *world) adds(namespaces ...string) {
	w.Helper()
	w.Change(w.scope, func() { w.scope.Spec.NamespaceMembers = append(w.scope.Spec.NamespaceMembers, namespaces...) })
}

// removes has a namespace leave.
func (w *world) removes(namespace string) {
	w.Helper()
	w.Change(w.scope, func() {
		w.scope.Spec.NamespaceMembers = slices.DeleteFunc(w.scope.Spec.NamespaceMembers, func(n string) bool { return n == namespace })
	})
}

// list is the watch list as it is.
func (w *world) list() []string {
	w.Helper()
	w.must(w.Client.Get(w.Context(), client.ObjectKeyFromObject(w.scope), w.scope))

	cm := &corev1.ConfigMap{}

	err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: w.scope.Spec.ConfigmapName}, cm)
	w.must(client.IgnoreNotFound(err))

	return strings.Split(cm.Data[scope.ListKey], ",")
}

// listed waits until the list names a namespace, forgotten until it does not.
func (w *world) listed(namespace string) {
	w.Helper()
	w.Within(patience, "the list names "+namespace, func() error {
		if list := w.list(); !slices.Contains(list, namespace) {
			return fmt.Errorf("it is %v; the scope says %+v", list, w.scope.Status)
		}

		return nil
	})
}

func (w *world) forgotten(namespace string) {
	w.Helper()
	w.Within(patience, "the list forgets "+namespace, func() error {
		if list := w.list(); slices.Contains(list, namespace) {
			return fmt.Errorf("it is %v; the scope says %+v", list, w.scope.Status)
		}

		return nil
	})
}

// works says whether the operator may work with its resources in a namespace.
func (w *world) works(namespace string) bool {
	w.Helper()

	return w.AllowedIn(w.ops, w.op.account, namespace, "list", w.op.resource.Group, w.op.plural)
}

// worksNot waits until it may not.
func (w *world) worksNot(namespace string) {
	w.Helper()
	w.Within(patience, "the operator may not work in "+namespace, func() error {
		if w.works(namespace) {
			return errors.New("it may")
		}

		return nil
	})
}

// restartedSince waits until a process began after so many others, and returns when that was. What is waited for is that it has
// the present list.
func (w *world) restartedSince(runs int) time.Time {
	w.Helper()

	var began time.Time

	w.Within(patience, "the operator is restarted", func() error {
		all := w.kubelet.Runs()
		if len(all) <= runs {
			return fmt.Errorf("%d processes began", len(all))
		}

		began = all[runs].Began

		return nil
	})

	return began
}

// joins holds that an operator serves a namespace that joins, and none that does not.
func joins(w *world) {
	outside, a := w.user(), w.member()

	if w.works(a) {
		w.Error("the operator may work in a namespace that has not joined")
	}

	runs, begun := len(w.kubelet.Runs()), time.Now()

	w.adds(a)
	restarted := w.restartedSince(runs).Sub(begun)
	w.served(a, 1)
	reconciled := time.Since(begun)

	w.measured("restarted after", "%.1f s", restarted.Seconds())
	w.measured("first reconcile after", "%.1f s", reconciled.Seconds())

	if w.works(outside) {
		w.Error("the operator may work in a namespace that is no member")
	}

	w.still(outside, 0)
}

// twoServed returns two members in which the operator works.
func (w *world) twoServed() (a, b string) {
	w.Helper()

	a, b = w.member(), w.member()
	w.adds(a, b)
	w.served(a, 1)
	w.served(b, 1)

	return a, b
}

// leaves holds that an operator loses a namespace that leaves, and touches nothing there any more.
func leaves(w *world) {
	a, b := w.twoServed()

	begun := time.Now()

	w.removes(b)
	w.worksNot(b)
	w.measured("rights gone after", "%.1f s", time.Since(begun).Seconds())
	w.resize(b, 2)
	w.resize(a, 2)
	w.served(a, 2)
	w.still(b, 1)
}

// withdrawn holds that others are served when the owner of one member takes the authorization back, and that the member comes
// back when it is authorized again.
func withdrawn(w *world) {
	a, b := w.twoServed()

	runs := len(w.kubelet.Runs())
	lag := w.asksAgainAndAgain(a)

	w.withdraws(b)
	w.forgotten(b)
	w.worksNot(b)
	w.restartedSince(runs)
	w.measured("others waited at most, when one withdrew", "%.0f s", lag().Seconds())

	w.resize(b, 3)
	size, err := w.size(a)
	w.must(err)
	w.resize(a, size+1)
	w.served(a, size+1)
	w.still(b, 1)

	w.ambit("authorize", b, "--to", w.ops, "--grant-only")
	w.served(b, 3)
}

// withdraws has the owner of a namespace delete the authorization by hand.
func (w *world) withdraws(namespace string) {
	w.Helper()

	list := &rbacv1.RoleBindingList{}
	w.must(w.Client.List(w.Context(), list, client.InNamespace(namespace)))

	deleted := 0

	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, "ambit-authorized-from-") {
			w.Remove(&list.Items[i])

			deleted++
		}
	}

	if deleted != 1 {
		w.Fatalf("%d authorizations in %s", deleted, namespace)
	}
}

// finishes holds that a namespace ends that is deleted while it is a member: the operator may do what the finalizers of its
// resources wait for.
func finishes(w *world) {
	a := w.member()
	w.adds(a)
	w.served(a, 1)

	if w.op.finalizer != "" {
		w.Within(patience, "the operator has put its finalizer on", func() error {
			o := w.resource(a, 1)
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}

			if !slices.Contains(o.GetFinalizers(), w.op.finalizer) {
				return fmt.Errorf("it has %v", o.GetFinalizers())
			}

			return nil
		})
	}

	begun := time.Now()

	w.Remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a}})
	w.Within(patience, a+" ends", func() error {
		ns := &corev1.Namespace{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Name: a}, ns); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("it has %+v", ns.Status), err)
		}

		return nil
	})
	w.measured("deleted member gone after", "%.0f s", time.Since(begun).Seconds())
	w.forgotten(a)
}
