package templates_test

import (
	"errors"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/testbed"
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

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.makes("t", 1)[0]}}
	binding, everywhere := w.bindingsIn(a)[0], w.everywhere("wide")

	for name, obj := range map[string]client.Object{"ClusterRole": role, "RoleBinding": &binding, "ClusterRoleBinding": everywhere} {
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

	w.patch(role, `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"test.example.com/none":"x"}}]}}`)
	w.Eventually("the ClusterRole is no aggregate", func() error {
		if w.get(role); role.AggregationRule != nil || len(role.Rules) != 1 {
			return fmt.Errorf("%+v", role)
		}

		return nil
	})
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
		return state + fmt.Sprint(o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		return state + fmt.Sprint(o.RoleRef, o.Subjects)
	default:
		return state
	}
}

func (w *world) isAgain(obj client.Object, state string) error {
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}

	if got := stateOf(obj); got != state {
		return fmt.Errorf("is %s\nwant %s", got, state)
	}

	return nil
}

// TestForeignObjectsAreNeverTakenForOurs: somebody deletes what Ambit made and puts something else under its name.
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

	w.says(in, no, "ScopingFailed", role, "did not make", w.name("t"))
	w.says(wide, no, "ScopingFailed")
	w.says(template, no, "TemplatingFailed")
	w.binds("i")
	w.binds("wide")
	w.MayNot(ops, "op", "", "delete nodes")

	w.Eventually("the statuses", func() error {
		w.get(in)
		w.get(template)

		if in.Status.BoundNamespaces != 0 || len(template.Status.ClusterRoles) != 0 {
			return fmt.Errorf("of the instance %+v, of the template %+v", in.Status, template.Status)
		}

		return nil
	})

	if w.get(foreign); foreign.GetLabels()["ambit.dev/scope"] != "" {
		t.Error("a foreign ClusterRole was changed")
	}

	// It goes, and all is well.
	w.Remove(foreign)
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", a)
	w.binds("wide", "")

	// The same with bindings: the foreign one stays and is named, and nothing else suffers.
	binding, everywhere := w.bindingsIn(a)[0], w.everywhere("wide")
	other := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a, Name: binding.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	w.usurp(&binding, other)

	w.says(in, no, "ScopingFailed", a)
	w.says(wide, yes, "ScopingSuccessful")

	otherEverywhere := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: everywhere.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	w.usurp(everywhere, otherEverywhere)

	w.says(wide, no, "ScopingFailed", everywhere.Name)
	w.Remove(other)
	w.Remove(otherEverywhere)
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

// TestNothingLeftOfOurs: when nothing of a ClusterRole says any more that Ambit made it, it counts as somebody else's.
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

	w.says(in, no, "ScopingFailed", role.Name)
	w.binds("i")
	w.Remove(role)
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", a)
}
