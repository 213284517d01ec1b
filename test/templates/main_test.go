// Package templates_test describes ScopeTemplates and ScopeInstances on a real API server with garbage collection, with the
// program that users run, under the rights that it is installed with.
package templates_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

func begin(t *testing.T) *world {
	t.Helper()

	return &world{World: beds.Begin(t, "cluster"), id: rand.String(6)}
}

// world is one test's view of the cluster. Its resources have no namespace, so their names end in id.
type world struct {
	*testbed.World

	id string
	// isAway says that the test stopped the manager.
	isAway bool
}

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

func (w *world) name(s string) string { return s + "-" + w.id }

// entry is a ClusterRole of a template, with rules in words and service accounts as "<namespace>/<name>".
func entry(generateName string, rules []string, accounts ...string) operatorsv1alpha1.ClusterRoleTemplate {
	e := operatorsv1alpha1.ClusterRoleTemplate{GenerateName: generateName}
	for _, words := range rules {
		e.Rules = append(e.Rules, testbed.Rule(words))
	}

	for _, a := range accounts {
		namespace, name, _ := strings.Cut(a, "/")
		e.Subjects = append(e.Subjects, operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
	}

	return e
}

func (w *world) template(name string, entries ...operatorsv1alpha1.ClusterRoleTemplate) *operatorsv1alpha1.ScopeTemplate {
	w.Helper()

	t := &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(name)}, Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: entries},
	}
	w.Make(t)

	return t
}

// get reads an object again.
func (w *world) get(obj client.Object) {
	w.Helper()

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.Fatalf("reading %T %s: %v", obj, obj.GetName(), err)
	}
}

// selecting makes an instance with a selector, in JSON, and namespaces by name.
func (w *world) selecting(name, template, selector string, namespaces ...string) *operatorsv1alpha1.ScopeInstance {
	w.Helper()

	in := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(name)},
		Spec: operatorsv1alpha1.ScopeInstanceSpec{
			ScopeTemplateName: w.name(template), Namespaces: namespaces,
			NamespaceSelector: &operatorv1.NamespaceSelector{Raw: []byte(selector)},
		},
	}
	w.Make(in)

	return in
}

func (w *world) instance(name, template string, namespaces ...string) *operatorsv1alpha1.ScopeInstance {
	w.Helper()

	in := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(name)},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: w.name(template), Namespaces: namespaces},
	}
	w.Make(in)

	return in
}

// says waits for the condition of a template or instance, for the present generation, with a message that has these words.
// Words are needed wherever the message matters: the reason may be what was said before the last change to the cluster.
func (w *world) says(obj client.Object, status metav1.ConditionStatus, reason string, words ...string) {
	w.Helper()
	w.Eventually(obj.GetName()+" says "+reason, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}

		conditions, kind := conditionsOf(obj)
		found := meta.FindStatusCondition(conditions, kind)

		if found == nil || found.Status != status || found.Reason != reason || found.ObservedGeneration != obj.GetGeneration() {
			return fmt.Errorf("generation %d: %+v", obj.GetGeneration(), conditions)
		}

		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("nothing about %q in %q", word, found.Message)
			}
		}

		return nil
	})
}

func conditionsOf(obj client.Object) (conditions []metav1.Condition, kind string) {
	switch obj := obj.(type) {
	case *operatorsv1alpha1.ScopeTemplate:
		return obj.Status.Conditions, "Templated"
	case *operatorsv1alpha1.ScopeInstance:
		return obj.Status.Conditions, "Scoped"
	default:
		return nil, ""
	}
}

// clusterRoles returns the names of the ClusterRoles that exist for a template.
func (w *world) clusterRoles(template string) []string {
	w.Helper()

	list := &rbacv1.ClusterRoleList{}
	if err := w.Client.List(w.Context(), list, client.HasLabels{"ambit.dev/scope"}); err != nil {
		w.Fatal(err)
	}

	var names []string

	for i := range list.Items {
		if list.Items[i].Annotations["ambit.dev/owner"] == "ScopeTemplate//"+w.name(template) {
			names = append(names, list.Items[i].Name)
		}
	}

	slices.Sort(names)

	return names
}

// bound returns the namespaces in which an instance has bindings, with "" for the whole cluster, sorted.
func (w *world) bound(instance string) []string {
	w.Helper()

	bindings, everywhere := &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}
	if err := errors.Join(w.Client.List(w.Context(), bindings, client.HasLabels{"ambit.dev/scope"}),
		w.Client.List(w.Context(), everywhere, client.HasLabels{"ambit.dev/scope"})); err != nil {
		w.Fatal(err)
	}

	var in []string

	owner := "ScopeInstance//" + w.name(instance)

	for i := range bindings.Items {
		if bindings.Items[i].Annotations["ambit.dev/owner"] == owner {
			in = append(in, bindings.Items[i].Namespace)
		}
	}

	for i := range everywhere.Items {
		if everywhere.Items[i].Annotations["ambit.dev/owner"] == owner {
			in = append(in, "")
		}
	}

	slices.Sort(in)

	return in
}

// binds waits until an instance has one binding in each of the namespaces and none elsewhere.
func (w *world) binds(instance string, namespaces ...string) {
	w.Helper()
	slices.Sort(namespaces)
	w.Eventually("the bindings of "+instance, func() error {
		if got := w.bound(instance); !slices.Equal(got, namespaces) {
			return fmt.Errorf("bound in %q, want %q", got, namespaces)
		}

		return nil
	})
}

// makes waits until a template has so many ClusterRoles, and returns their names.
func (w *world) makes(template string, n int) []string {
	w.Helper()

	var got []string

	w.Eventually("the ClusterRoles of "+template, func() error {
		if got = w.clusterRoles(template); len(got) != n {
			return fmt.Errorf("%q, want %d", got, n)
		}

		return nil
	})

	return got
}

func (w *world) gone(obj client.Object) {
	w.Helper()
	w.Eventually(obj.GetName()+" goes", w.Gone(obj))
}

// mentions holds that a message says something.
func (w *world) mentions(message string, words ...string) {
	w.Helper()

	for _, word := range words {
		if !strings.Contains(message, word) {
			w.Errorf("it does not say %q: %s", word, message)
		}
	}
}

// background is a context that outlives the test.
func (*world) background() context.Context { return context.Background() }

// eachOf calls do for each object of a list.
func eachOf(list client.ObjectList, do func(client.Object) error) error {
	return meta.EachListItem(list, func(o runtime.Object) error {
		obj, ok := o.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", o)
		}

		return do(obj)
	})
}
