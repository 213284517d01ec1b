package finishing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func (w *world) end(namespace string) {
	w.Helper()
	w.Remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

func (w *world) ends(namespace string, within time.Duration) {
	w.Helper()
	w.Within(within, namespace+" ends", func() error {
		ns := &corev1.Namespace{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Name: namespace}, ns); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("it has %+v", ns.Status), err)
		}

		return nil
	})
}

// swept complains until Kubernetes has deleted all that is in a namespace, as far as it goes: then it tells of the widget that is
// left.
func (w *world) swept(namespace string) error {
	ns := &corev1.Namespace{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: namespace}, ns); err != nil {
		return err
	}

	for _, c := range ns.Status.Conditions {
		if c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue &&
			strings.Contains(c.Message, "widgets."+w.group) {
			return nil
		}
	}

	return fmt.Errorf("it has %+v", ns.Status)
}

// free takes the finalizer off a widget as an administrator.
func (w *world) free(u *unstructured.Unstructured) {
	w.Helper()

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	if err := w.Client.Patch(w.Context(), w.widget(u.GetNamespace(), u.GetName()), patch); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
}

// TestADeletedMemberLetsItsOperatorFinish holds that the permissions outlast what Kubernetes deletes in a namespace, until the
// operator has let go of the last widget, and that the namespace ends then.
func TestADeletedMemberLetsItsOperatorFinish(t *testing.T) {
	w := begin(t, "cluster")
	w.serve(operatorv1.NamespaceScopeSpec{})

	alive := w.widget(w.member, "alive", finalizer)
	w.Make(alive)

	began := time.Now()

	w.end(w.member)
	w.finishing(w.member, "widgets."+w.group+" alive")
	w.Eventually("Kubernetes has begun to delete", func() error { return w.swept(w.member) })

	if w.copies(w.member) == 0 || !w.mayWork(w.member) || !strings.Contains(w.list(), w.member) {
		t.Fatalf("after Kubernetes began to delete: %d copies, it may work: %t, the list is %s",
			w.copies(w.member), w.mayWork(w.member), w.list())
	}

	if err := w.finish(alive); err != nil {
		t.Fatalf("the operator may not finish: %v", err)
	}

	w.copiesGo(w.member, soon)
	w.listed(w.member, false)
	w.ends(w.member, 90*time.Second)
	t.Logf("the namespace ended after %s", time.Since(began).Round(time.Second))
}

// TestADeletedMemberIsNotHeldForEver holds that a widget that nobody lets go of keeps the operator for the grace time, and that
// what Ambit put on its copies keeps no namespace: neither after that, nor where nothing waits, nor where the scope goes.
func TestADeletedMemberIsNotHeldForEver(t *testing.T) {
	t.Run("the time is over", func(t *testing.T) {
		w := begin(t, "cluster")
		w.serve(operatorv1.NamespaceScopeSpec{})

		stuck := w.widget(w.member, "stuck", finalizer)
		w.Make(stuck)

		began := time.Now()

		w.end(w.member)
		w.finishing(w.member)
		w.worksNoMore(w.member, 2*grace)
		t.Logf("the operator kept its permissions for %s", time.Since(began).Round(100*time.Millisecond))
		w.copiesGo(w.member, soon)
		w.listed(w.member, false)
		w.told("NamespaceUnfinished", w.member)
		w.free(stuck)
		w.ends(w.member, 90*time.Second)
	})

	t.Run("nothing waits", func(t *testing.T) {
		w := begin(t, "cluster")
		w.serve(operatorv1.NamespaceScopeSpec{})
		w.Make(w.widget(w.member, "free"))
		w.end(w.member)
		w.listed(w.member, false)
		w.ends(w.member, 90*time.Second)
	})

	t.Run("the scope goes", func(t *testing.T) {
		w := begin(t, "cluster")
		w.serve(operatorv1.NamespaceScopeSpec{})

		stuck := w.widget(w.member, "stuck", finalizer)
		w.Make(stuck)
		w.end(w.member)
		w.finishing(w.member)
		w.Remove(w.scope)
		w.worksNoMore(w.member, soon)
		w.copiesGo(w.member, soon)
		w.free(stuck)
		w.ends(w.member, 90*time.Second)
	})
}

// TestNobodyHoldsWhatTheyMayNotLetGo holds that a delegate's copies get no finalizer: what allows it to take one off may be
// deleted with the namespace.
func TestNobodyHoldsWhatTheyMayNotLetGo(t *testing.T) {
	w := begin(t, "cluster")
	w.serveByDelegate()

	stuck := w.widget(w.member, "stuck", finalizer)
	w.Make(stuck)
	w.end(w.member)
	w.listed(w.member, false)
	w.Eventually("Kubernetes has deleted what it can", func() error {
		swept := w.swept(w.member)
		bindings := &rbacv1.RoleBindingList{}
		if err := w.Client.List(t.Context(), bindings, client.InNamespace(w.member), client.HasLabels{scope.LabelScope}); err != nil {
			t.Fatal(err)
		}

		for i := range bindings.Items {
			if len(bindings.Items[i].Finalizers) > 0 {
				t.Fatalf("binding %s has %v", bindings.Items[i].Name, bindings.Items[i].Finalizers)
			}
		}

		return swept
	})

	w.free(stuck)
	w.ends(w.member, 90*time.Second)
}
