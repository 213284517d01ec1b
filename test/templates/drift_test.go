package templates_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestDriftIsUndone lets a cluster administrator change each kind of object in every way, one after the other.
func TestDriftIsUndone(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	narrow, wide := w.instance("narrow", "t", a), w.instance("wide", "t")
	w.says(narrow, yes, "ScopingSuccessful")
	w.says(wide, yes, "ScopingSuccessful")

	find := map[string]func() client.Object{
		"ClusterRole": func() client.Object {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.makes("t", 1)[0]}}
		},
		"RoleBinding":        func() client.Object { return &w.bindingsIn(a)[0] },
		"ClusterRoleBinding": func() client.Object { return w.everywhere("wide") },
	}

	for _, name := range slices.Sorted(maps.Keys(find)) {
		// What was replaced for the one before goes first.
		w.makes("t", 1)
		w.binds("narrow", a)
		w.binds("wide", "")

		obj := find[name]()
		w.get(obj)
		content, change := stateOf(obj), `"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"eve"}]`

		if name == "ClusterRole" {
			change = `"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`
		}

		for _, merge := range []string{
			`{` + change + `}`,
			`{"metadata":{"labels":{"ambit.dev/scope":null}}}`,
			`{"metadata":{"labels":{"ambit.dev/scope":"0123456789abcdef"},"annotations":{"ambit.dev/owner":"ScopeInstance//other"}}}`,
			`{"metadata":{"labels":null,"annotations":null}}`,
			`{"metadata":{"labels":null,"annotations":null},` + change + `}`,
			`{"metadata":{"ownerReferences":null}}`,
			`{"metadata":{"ownerReferences":[` + ownerRef("ScopeTemplate", template.Name, string(template.UID)) + `,` +
				ownerRef("ScopeInstance", wide.Name, string(wide.UID)) + `]}}`,
		} {
			w.patch(obj, merge)
			w.Eventually(name+" after "+merge, func() error { return w.isAgain(obj, content) })
		}

		before := obj.GetUID()
		w.Remove(obj)
		w.Eventually(name+" after its deletion", func() error { return w.isAgain(obj, content) })

		if obj.GetUID() == before {
			t.Errorf("%s was not deleted", name)
		}
	}

	// What its rules are is unknown then, so it may have been bound.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.makes("t", 1)[0]}}
	w.patch(role, `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"test.example.com/none":"x"}}]}}`)
	w.Eventually("another ClusterRole is in its place", w.Gone(role))

	role.Name = w.makes("t", 1)[0]
	if w.get(role); role.AggregationRule != nil || len(role.Rules) != 2 {
		t.Errorf("%+v", role)
	}
	w.says(narrow, yes, "ScopingSuccessful")
	w.says(template, yes, "TemplatingSuccessful")
}

func ownerRef(kind, name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":%q,"name":%q,"uid":%q}`, kind, name, uid)
}

// everywhere returns the ClusterRoleBinding of an instance.
func (w *world) everywhere(instance string) *rbacv1.ClusterRoleBinding {
	w.Helper()

	list := &rbacv1.ClusterRoleBindingList{}
	if err := w.Client.List(w.Context(), list, client.HasLabels{"ambit.dev/scope"}); err != nil {
		w.Fatal(err)
	}

	for i := range list.Items {
		if list.Items[i].Annotations["ambit.dev/owner"] == "ScopeInstance//"+w.name(instance) {
			return &list.Items[i]
		}
	}

	w.Fatalf("%s is not bound in the whole cluster", instance)

	return nil
}

// stateOf is everything about an object that Ambit decides.
func stateOf(obj client.Object) string {
	state := fmt.Sprint(obj.GetLabels(), obj.GetAnnotations(), obj.GetOwnerReferences())

	switch o := obj.(type) {
	case *rbacv1.ClusterRole:
		return state + fmt.Sprint(o.Rules)
	case *rbacv1.RoleBinding:
		return state + fmt.Sprint(o.RoleRef.Kind, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		return state + fmt.Sprint(o.RoleRef.Kind, o.Subjects)
	default:
		return state
	}
}

// isAgain looks for an object of this state, under whatever name, and puts it into obj. What was there before has gone.
func (w *world) isAgain(obj client.Object, state string) error {
	list := &unstructured.UnstructuredList{}
	gvk, err := w.Client.GroupVersionKindFor(obj)
	list.SetGroupVersionKind(gvk)

	if err := errors.Join(err, w.Client.List(w.Context(), list, client.InNamespace(obj.GetNamespace()))); err != nil {
		return err
	}

	was, found, stem := obj.GetName(), false, obj.GetName()[:len(obj.GetName())-16]

	for i := range list.Items {
		if !strings.HasPrefix(list.Items[i].GetName(), stem) {
			continue
		}

		one, _ := obj.DeepCopyObject().(client.Object)
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(&list.Items[i]), one); err != nil {
			return err
		}

		switch got := stateOf(one); {
		case got == state:
			found = true

			obj.SetName(one.GetName())
		case one.GetName() == was:
			return fmt.Errorf("is %s\nwant %s", got, state)
		}
	}

	if !found {
		return fmt.Errorf("none is %s", state)
	}

	return w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
}

// TestForeignObjectsAreNeverTakenForOurs: somebody deletes what Ambit made and puts something else under its name. It is never
// bound, and gets nothing; it goes, and everything is served under other names.
func TestForeignObjectsAreNeverTakenForOurs(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	in, wide := w.instance("i", "t", a), w.instance("wide", "t")
	w.binds("i", a)
	w.binds("wide", "")

	role := w.makes("t", 1)[0]
	foreign := w.usurp(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}}, testbed.ClusterRole(role, "delete nodes"))
	w.served(in, wide, foreign)

	if now := w.makes("t", 1)[0]; now == role {
		t.Errorf("the name %s came twice", role)
	}

	w.Eventually("the status names the ClusterRole", func() error {
		if w.get(template); !slices.Equal(template.Status.ClusterRoles, w.makes("t", 1)) {
			return fmt.Errorf("%+v", template.Status)
		}

		return nil
	})

	binding, everywhere := w.bindingsIn(a)[0], w.everywhere("wide")
	view := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	w.served(in, wide, w.usurp(&binding, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a, Name: binding.Name}, RoleRef: view,
	}))
	w.served(in, wide, w.usurp(everywhere, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: everywhere.Name}, RoleRef: view,
	}))
	w.MayNot(ops, "op", "", "delete nodes")
}

// served waits until what stands under a name of Ambit's is gone, and until both instances are served without it.
func (w *world) served(in, wide *operatorsv1alpha1.ScopeInstance, foreign client.Object) {
	w.Helper()
	w.Eventually("what has the name "+foreign.GetName()+" goes", func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(foreign), foreign)
		if foreign.GetLabels()["ambit.dev/scope"] != "" {
			w.Errorf("a foreign object was made ours: %+v", foreign)
		}

		if apierrors.IsNotFound(err) {
			return nil
		}

		return fmt.Errorf("it is there (%w)", err)
	})
	w.binds("i", in.Spec.Namespaces[0])
	w.binds("wide", "")
	w.says(in, yes, "ScopingSuccessful")
	w.says(wide, yes, "ScopingSuccessful")
}

var errOurs = errors.New("it is Ambit's own")

// usurp deletes an object and puts another under its name, as often as it takes to be faster than Ambit.
func (w *world) usurp(ours, theirs client.Object) client.Object {
	w.Helper()
	w.Eventually("somebody else has the name "+ours.GetName(), func() error {
		if err := client.IgnoreNotFound(w.Client.Delete(w.Context(), ours)); err != nil {
			return err
		}

		if err := w.Client.Create(w.Context(), theirs, client.FieldOwner("somebody")); err != nil {
			theirs.SetResourceVersion("")

			return errors.Join(errOurs, err)
		}

		return nil
	})

	return theirs
}

// TestNothingLeftOfOurs: when nothing of a ClusterRole says any more that Ambit made it, its name does. It goes, and another one
// comes in its place.
func TestNothingLeftOfOurs(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

	in := w.instance("i", "t", a)
	w.says(in, yes, "ScopingSuccessful")

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.makes("t", 1)[0]}}
	w.patch(role, `{"metadata":{"labels":null,"annotations":null,"ownerReferences":null},"rules":[
		{"apiGroups":[""],"resources":["nodes"],"verbs":["delete"]}]}`)

	w.Eventually("it goes", w.Gone(role))
	w.makes("t", 1)
	w.binds("i", a)
	w.May(ops, "op", a, "get secrets")
	w.says(in, yes, "ScopingSuccessful")
}
