// Package finishing_test describes how operators finish their work in a namespace that leaves a scope, on a real API server:
// until nothing waits for their finalizers there, and for a bounded time, they keep what they have.
package finishing_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	// grace is how long operators may take here: longer than whatever a test does meanwhile, on a busy machine.
	grace = 45 * time.Second
	// soon is much less than that, and more than Ambit and the API server need on a busy machine.
	soon = 30 * time.Second
)

const finalizer = "example.com/clean-up"

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

// world is an operator that works on a kind of its own in a member, and a second member.
type world struct {
	*testbed.World

	ops, member, other, group string

	scope *operatorv1.NamespaceScope
}

func begin(t *testing.T, profile string) *world {
	t.Helper()

	return newWorld(beds.Begin(t, profile, "--restart-interval=1s", "--finish-grace="+grace.String()))
}

func newWorld(bed *testbed.World) *world {
	w := &world{World: bed, ops: bed.Namespace("ops"), member: bed.Namespace("member"), other: bed.Namespace("other")}
	w.group = w.ops + ".example.com"
	w.define()
	w.Operator(w.ops, "op", "get secrets")

	role := testbed.Role(w.ops, "widgets")
	role.Rules = []rbacv1.PolicyRule{w.rule()}
	w.Make(role, testbed.Bind(w.ops, "Role", "widgets", w.ops, "op"))

	return w
}

func (w *world) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{w.group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "update", "patch"},
	}
}

// serve makes the scope with both members, and waits until they are served.
func (w *world) serve(spec operatorv1.NamespaceScopeSpec) {
	w.Helper()

	spec.NamespaceMembers = []string{w.member, w.other}
	w.scope = w.Scope(w.ops, spec)
	w.works(w.member)
	w.works(w.other)
	w.listed(w.member, true)
}

// serveByDelegate makes the scope with an account to write as, which may give the operator in both members what it holds.
func (w *world) serveByDelegate() {
	w.Helper()
	w.Delegate(w.ops, []string{"get secrets"}, w.member, w.other)

	for _, name := range []string{w.member, w.other} {
		role := testbed.Role(name, "widgets")
		role.Rules = []rbacv1.PolicyRule{w.rule()}
		w.Make(role, testbed.Bind(name, "Role", "widgets", w.ops, "delegate"))
	}

	w.serve(operatorv1.NamespaceScopeSpec{ServiceAccountName: "delegate"})
}

// define makes the operator's kind.
func (w *world) define() {
	w.Helper()
	w.Make(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + w.group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: w.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	})
	w.Cleanup(func() {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + w.group}}
		_ = w.Client.Delete(w.Context(), crd) // The cluster goes with it.
	})
	w.Eventually("widgets are served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: w.group, Version: "v1", Kind: "WidgetList"})

		return w.Client.List(w.Context(), list)
	})
}

func (w *world) widget(namespace, name string, finalizers ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: w.group, Version: "v1", Kind: "Widget"})
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetFinalizers(finalizers)

	return u
}

// waiting makes a widget that waits for the operator.
func (w *world) waiting(namespace, name string) *unstructured.Unstructured {
	w.Helper()

	u := w.widget(namespace, name, finalizer)
	w.Make(u)
	w.Remove(u)

	return u
}

// operator is a client with what the operator holds.
func (w *world) operator() client.Client {
	return w.As(scope.AccountUser(w.ops, "op"), "system:serviceaccounts", "system:serviceaccounts:"+w.ops, "system:authenticated")
}

// finish does what the operator does with a widget that is deleted.
func (w *world) finish(u *unstructured.Unstructured) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))

	return w.operator().Patch(w.Context(), w.widget(u.GetNamespace(), u.GetName()), patch)
}

// leave takes the member out of the scope.
func (w *world) leave() {
	w.Helper()
	w.Change(w.scope, func() { w.scope.Spec.NamespaceMembers = []string{w.other} })
}

func (w *world) mayWork(namespace string) bool {
	w.Helper()

	return w.AllowedIn(w.ops, "op", namespace, "update", w.group, "widgets")
}

func (w *world) works(namespace string) {
	w.Helper()
	w.Eventually("the operator works in "+namespace, func() error {
		if !w.mayWork(namespace) {
			return errors.New("it may not")
		}

		return nil
	})
}

func (w *world) worksNoMore(namespace string, within time.Duration) {
	w.Helper()
	w.Within(within, "the operator works no more in "+namespace, func() error {
		if w.mayWork(namespace) {
			return errors.New("it may")
		}

		return nil
	})
}

func (w *world) list() string {
	cm := &corev1.ConfigMap{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: "namespace-scope"}, cm); err != nil {
		return err.Error()
	}

	return cm.Data["namespaces"]
}

func (w *world) listed(namespace string, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s in the list: %t", namespace, want), func() error {
		if list := w.list(); slices.Contains(strings.Split(list, ","), namespace) != want {
			return fmt.Errorf("the list is %q", list)
		}

		return nil
	})
}

// finishing waits until status says that a namespace finishes, in these words.
func (w *world) finishing(namespace string, words ...string) operatorv1.FinishingMember {
	w.Helper()

	var found operatorv1.FinishingMember

	w.Eventually("status says that "+namespace+" finishes", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(w.scope), w.scope); err != nil {
			return err
		}

		for _, found = range w.scope.Status.FinishingMembers {
			if found.Namespace == namespace &&
				!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(found.Message, word) }) {
				return nil
			}
		}

		return fmt.Errorf("status is %+v", w.scope.Status)
	})

	return found
}

// copies counts what is projected into a namespace.
func (w *world) copies(namespace string) int {
	w.Helper()

	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings} {
		if err := w.Client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{scope.LabelScope}); err != nil {
			w.Fatal(err)
		}
	}

	return len(roles.Items) + len(bindings.Items)
}

func (w *world) copiesGo(namespace string, within time.Duration) {
	w.Helper()
	w.Within(within, "what was projected into "+namespace+" goes", func() error {
		if n := w.copies(namespace); n > 0 {
			return fmt.Errorf("%d are there", n)
		}

		return nil
	})
}

// restartedFor is the list for which the operator restarted last.
func (w *world) restartedFor() string {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: "op"}, d); err != nil {
		w.Fatal(err)
	}

	return d.Spec.Template.Annotations[scope.AnnotationListHash]
}

// steadily fails when check complains at any time until Ambit has taken in what happened, which it has when a Role that the
// operator gets now is copied into the other member.
func (w *world) steadily(what string, check func() error) {
	w.Helper()

	role := testbed.Role(w.ops, "marker-"+rand.String(6))
	role.Rules = []rbacv1.PolicyRule{w.rule()}
	binding := testbed.Bind(w.ops, "Role", role.Name, w.ops, "op")
	w.Make(role, binding)

	checked := func() {
		w.Helper()

		if err := check(); err != nil {
			w.Fatalf("%s: %v", what, err)
		}
	}

	w.Eventually("a later Role is copied", func() error {
		checked()

		bindings := &rbacv1.RoleBindingList{}
		if err := w.Client.List(w.Context(), bindings, client.InNamespace(w.other), client.HasLabels{scope.LabelScope}); err != nil {
			return err
		}

		for i := range bindings.Items {
			if bindings.Items[i].Annotations[scope.AnnotationSource] == "RoleBinding/"+w.ops+"/"+binding.Name {
				return nil
			}
		}

		return fmt.Errorf("%s is not there", binding.Name)
	})
	checked()
}
