package installs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestDriftOfEverything: whatever Ambit makes for an operator is put back when somebody changes it, and comes back when somebody
// deletes it.
func TestDriftOfEverything(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("drifts", "Drift")
	own, target := w.Namespace("own"), w.Namespace("target")
	g := w.group(own, targets(target))
	op := csv(own, "op.v1", owning(crd, "Drift"), clusterPermissions("get nodes"))
	w.Make(op)
	w.succeeds(op)
	w.told(op, g)

	// An account, a Deployment, a Role and a RoleBinding in each of two namespaces, a ClusterRole and its binding, three of the
	// group and four of the API.
	const all = 15

	var objects []client.Object

	w.Eventually("everything is made", func() error {
		if objects = w.everything(own, target, crd); len(objects) != all {
			return fmt.Errorf("there are %d of %d objects", len(objects), all)
		}

		// Those of the group are there before the API is, and are replaced when it comes.
		for _, obj := range objects {
			role, is := obj.(*rbacv1.ClusterRole)
			if is && strings.HasPrefix(role.Name, "olm.og.") &&
				(role.AggregationRule == nil || len(role.AggregationRule.ClusterRoleSelectors) == 0) {
				return fmt.Errorf("ClusterRole %s takes its rules from none yet", role.Name)
			}
		}

		return nil
	})

	for _, obj := range objects {
		t.Run(fmt.Sprintf("%T %s", obj, obj.GetName()), func(t *testing.T) {
			w := &world{&testbed.World{T: t, Bed: w.Bed}}
			want := decided(t, obj)
			w.putBack(obj, want, func(types.UID) bool { return true }) // Its role may have been replaced, and it with that.

			uid := obj.GetUID()
			w.Change(obj, func() { spoil(obj) })
			w.putBack(obj, want, func(now types.UID) bool { return now == uid })
			w.Remove(obj)
			w.putBack(obj, want, func(now types.UID) bool { return now != uid })
		})
	}

	w.Change(op, func() { op.Annotations["olm.targetNamespaces"] = own })
	w.told(op, g)
	w.succeeds(op)
}

// everything lists what Ambit made for what is installed in a namespace.
func (w *world) everything(own, target, crd string) []client.Object {
	w.Helper()

	var out []client.Object

	add := func(list client.ObjectList, options ...client.ListOption) {
		if err := w.Client.List(w.Context(), list, options...); err != nil {
			w.Fatal(err)
		}

		each(list, func(obj client.Object) {
			_, install := list.(*appsv1.DeploymentList)
			_, account := list.(*corev1.ServiceAccountList)
			owner := obj.GetAnnotations()["ambit.dev/owner"]

			if (install || account) && obj.GetName() == "op" || strings.Contains(owner, "/"+own+"/") ||
				strings.HasPrefix(obj.GetName(), crd+"-v1-") {
				out = append(out, obj.DeepCopyObject().(client.Object))
			}
		})
	}

	for _, namespace := range []string{own, target} {
		in := client.InNamespace(namespace)
		add(&rbacv1.RoleList{}, in)
		add(&rbacv1.RoleBindingList{}, in)
	}

	add(&corev1.ServiceAccountList{}, client.InNamespace(own))
	add(&appsv1.DeploymentList{}, client.InNamespace(own))
	add(&rbacv1.ClusterRoleList{})
	add(&rbacv1.ClusterRoleBindingList{})

	return out
}

// spoil changes everything about an object that is Ambit's to decide and that somebody else may change, at once.
func spoil(obj client.Object) {
	obj.SetLabels(nil)

	rules := []rbacv1.PolicyRule{testbed.Rule("get pods")}

	switch obj := obj.(type) {
	case *rbacv1.Role:
		obj.Rules = rules
	case *rbacv1.RoleBinding:
		obj.Subjects = nil
	case *rbacv1.ClusterRoleBinding:
		obj.Subjects = nil
	case *rbacv1.ClusterRole:
		// Those of an API get no rules back, since somebody may have bound them without.
		if _, ofAPI := obj.Annotations["ambit.dev/api"]; ofAPI {
			rules = append(obj.Rules, rules...)
		}

		obj.OwnerReferences, obj.Rules = nil, rules
		if obj.AggregationRule != nil {
			obj.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"x": "y"}}}
		}
	case *corev1.ServiceAccount:
		obj.OwnerReferences = nil
	case *appsv1.Deployment:
		obj.OwnerReferences = nil
		obj.Spec.Template.Spec.ServiceAccountName = "default"
		obj.Spec.Template.Annotations["olm.targetNamespaces"] = "elsewhere"
	}
}

// putBack waits until an object is as wanted, with a UID that is right.
func (w *world) putBack(obj client.Object, want string, isRight func(types.UID) bool) {
	w.Helper()
	slot := obj.GetAnnotations()["ambit.dev/copy"]

	w.Eventually(obj.GetName()+" is put back", func() error {
		if slot != "" && !strings.HasPrefix(slot, "olm.og.") {
			return w.isReplaced(obj, slot, want)
		}

		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}

		if got := decided(w.T, obj); got != want || !isRight(obj.GetUID()) {
			return fmt.Errorf("it is %s, want %s", got, want)
		}

		return nil
	})
}

// isReplaced looks for the one object in a slot, by whatever name, and puts it into obj.
func (w *world) isReplaced(obj client.Object, slot, want string) error {
	list := &unstructured.UnstructuredList{}
	gvk, err := w.Client.GroupVersionKindFor(obj)
	list.SetGroupVersionKind(gvk)

	if err := errors.Join(err, w.Client.List(w.Context(), list, client.InNamespace(obj.GetNamespace()))); err != nil {
		return err
	}

	var names []string

	for i := range list.Items {
		if list.Items[i].GetAnnotations()["ambit.dev/copy"] == slot {
			names = append(names, list.Items[i].GetName())
		}
	}

	if len(names) != 1 {
		return fmt.Errorf("there are %q", names)
	}

	obj.SetName(names[0])

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}

	if got := decided(w.T, obj); got != want {
		return fmt.Errorf("it is %s, want %s", got, want)
	}

	return nil
}

// decided is what Ambit decides about an object, to compare it; the names of roles come with them.
func decided(t *testing.T, obj client.Object) string {
	t.Helper()

	owners := obj.GetOwnerReferences()

	var content any

	switch obj := obj.(type) {
	case *rbacv1.Role:
		content = obj.Rules
	case *rbacv1.RoleBinding:
		content = []any{obj.RoleRef.Kind, obj.Subjects}
	case *rbacv1.ClusterRoleBinding:
		content = []any{obj.RoleRef.Kind, obj.Subjects}
	case *rbacv1.ClusterRole:
		content = []any{obj.AggregationRule, obj.Rules}
	case *appsv1.Deployment:
		content = []any{obj.Spec.Template.Spec.ServiceAccountName, obj.Spec.Template.Annotations}
	}

	text, err := json.Marshal([]any{obj.GetLabels(), owners, content})
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
