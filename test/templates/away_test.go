package templates_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// alone starts a test that stops the manager.
func alone(t *testing.T) *world {
	t.Helper()

	w := &world{World: beds.Alone(t, "cluster"), id: rand.String(6)}
	collecting.Do(w.awaitCollector)
	t.Cleanup(func() {
		if w.isAway {
			w.back() // For the next test.
		}
	})

	return w
}

var collecting sync.Once

// awaitCollector waits until the garbage collector has heard of the kinds, which takes it half a minute on a new cluster.
func (w *world) awaitCollector() {
	w.Helper()

	owner := w.instance("owner", "nothing", "kube-public")
	ref := metav1.OwnerReference{
		APIVersion: operatorsv1alpha1.GroupVersion.String(), Kind: "ScopeInstance", Name: owner.Name, UID: owner.UID,
	}
	owned := testbed.ClusterRole(w.name("owned"))
	owned.OwnerReferences = []metav1.OwnerReference{ref}
	w.Make(owned)
	w.Remove(owner)

	w.Within(90*time.Second, "the garbage collector takes "+owned.Name, w.Gone(owned))
}

func (w *world) away() {
	w.Helper()

	if err := w.Manager.Stop(); err != nil {
		w.Fatalf("stopping the manager: %v", err)
	}

	w.isAway = true
}

func (w *world) back() {
	w.Helper()

	if err := w.Manager.Start(); err != nil {
		w.Fatalf("starting the manager: %v", err)
	}

	w.isAway = false
}

// TestInstanceDeletedWhileAway: the bindings are the instance's, so the cluster's own garbage collector takes them.
func TestInstanceDeletedWhileAway(t *testing.T) {
	w := alone(t)
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	gone, wide, stays := w.instance("gone", "t", a, b), w.instance("wide", "t"), w.instance("stays", "t", b)
	w.binds("gone", a, b)
	w.binds("wide", "")
	w.says(stays, yes, "ScopingSuccessful")

	w.away()
	w.Remove(gone)
	w.Remove(wide)
	w.binds("gone")
	w.binds("wide")
	w.MayNot(ops, "op", a, "get secrets")
	w.Remove(stays)
	w.binds("stays")
	w.makes("t", 1)
	w.back()

	// Nobody refers to the template any more.
	w.makes("t", 0)
}

// TestTemplateDeletedWhileAway: with the ClusterRoles go the rights, and what bound them goes when Ambit is back.
func TestTemplateDeletedWhileAway(t *testing.T) {
	w := alone(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	in, wide := w.instance("i", "t", a), w.instance("wide", "t")
	w.says(in, yes, "ScopingSuccessful")
	w.says(wide, yes, "ScopingSuccessful")

	w.away()
	w.Remove(template)
	w.makes("t", 0)
	w.MayNot(ops, "op", a, "get secrets")
	w.binds("i", a)
	w.back()

	w.binds("i")
	w.binds("wide")
	w.says(in, no, "ScopeTemplateNotFound")
	w.says(wide, no, "ScopeTemplateNotFound")
}

// TestTemplateMadeAgainWhileAway: the new template is another resource, and everything is its own afterwards.
func TestTemplateMadeAgainWhileAway(t *testing.T) {
	w := alone(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	in := w.instance("i", "t", a)
	w.says(in, yes, "ScopingSuccessful")

	w.away()
	w.Remove(template)
	w.gone(template)
	template = w.template("t", entry("reader-", []string{"get pods"}, ops+"/op"))
	w.Remove(in)
	w.gone(in)
	in = w.instance("i", "t", a)
	w.back()

	w.says(in, yes, "ScopingSuccessful")
	w.May(ops, "op", a, "get pods")
	w.MayNot(ops, "op", a, "get secrets")
	w.binds("i", a)

	for by, list := range map[owner]client.ObjectList{
		{"ScopeTemplate", string(template.UID)}: &rbacv1.ClusterRoleList{},
		{"ScopeInstance", string(in.UID)}:       &rbacv1.RoleBindingList{},
	} {
		w.Eventually("the owner of what was made for "+by.kind, func() error { return w.ownedBy(list, by) })
	}
}

type owner struct{ kind, uid string }

// ownedBy holds that everything of the test bears one owner reference.
func (w *world) ownedBy(list client.ObjectList, by owner) error {
	if err := w.Client.List(w.Context(), list, client.HasLabels{"ambit.dev/scope"}); err != nil {
		return err
	}

	return eachOf(list, func(obj client.Object) error {
		of := obj.GetAnnotations()["ambit.dev/owner"]
		if of != "ScopeTemplate//"+w.name("t") && of != "ScopeInstance//"+w.name("i") {
			return nil
		}

		if refs := obj.GetOwnerReferences(); len(refs) != 1 || string(refs[0].UID) != by.uid || refs[0].Kind != by.kind {
			return fmt.Errorf("%s is owned by %+v", obj.GetName(), refs)
		}

		return nil
	})
}

// TestChangesWhileAway: what everybody did meanwhile is found, however little of Ambit's marks they left.
func TestChangesWhileAway(t *testing.T) {
	w := alone(t)
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Make(testbed.Account(ops, "op"))

	template := w.template("t",
		entry("reader-", []string{"get secrets"}, ops+"/op"),
		entry("gone-", []string{"get pods"}, ops+"/op"))
	in := w.instance("i", "t", a, b)
	w.says(in, yes, "ScopingSuccessful")
	roles := w.makes("t", 2)

	w.away()
	w.Change(template, func() {
		template.Spec.ClusterRoles = []operatorsv1alpha1.ClusterRoleTemplate{entry("reader-", []string{"get services"}, ops+"/op")}
	})
	w.Change(in, func() { in.Spec.Namespaces = []string{b} })
	w.patch(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roles[1]}},
		`{"metadata":{"labels":null,"annotations":null},"rules":[]}`)

	for _, binding := range w.bindingsIn(b) {
		w.patch(&binding, `{"metadata":{"labels":null,"ownerReferences":null},"subjects":null}`)
	}

	w.back()

	w.May(ops, "op", b, "get services")
	w.MayNot(ops, "op", b, "get pods")
	w.MayNot(ops, "op", a, "get secrets")
	w.binds("i", b)
	w.makes("t", 1)
}

// TestKilledInTheMiddle: names are computed and never drawn, so that whoever begins anew makes nothing twice.
func TestKilledInTheMiddle(t *testing.T) {
	w := alone(t)
	ops := w.Namespace("ops")
	w.Make(testbed.Account(ops, "op"))

	var places, want []string

	for i := range 40 {
		ns := w.Namespace(fmt.Sprintf("member-%02d", i))
		places = append(places, ns)
		want = append(want, ns, ns)
	}

	template := w.template("t",
		entry("reader-", []string{"get secrets"}, ops+"/op"),
		entry("writer-", []string{"create pods"}, ops+"/op"))
	in := w.instance("i", "t", places...)

	for i := range 6 {
		time.Sleep(time.Duration(rand.IntnRange(0, 120)) * time.Millisecond)

		if err := w.Manager.Kill(); err != nil {
			t.Fatal(err)
		}

		w.isAway = true

		// Each life begins with something else to do.
		w.Change(template, func() {
			template.Spec.ClusterRoles[0].Rules = []rbacv1.PolicyRule{testbed.Rule(fmt.Sprintf("get thing%d", i))}
		})
		w.back()

		if i%2 == 0 {
			w.Eventually("something is bound", func() error {
				if len(w.bound("i")) == 0 {
					return fmt.Errorf("nothing of %s", in.Name)
				}

				return nil
			})
		}
	}

	w.binds("i", want...)
	w.makes("t", 2)
	w.says(in, yes, "ScopingSuccessful")
	w.May(ops, "op", places[0], "get thing5")
	w.Remove(in)
	w.binds("i")
	w.makes("t", 0)
}

// TestEmptiedListWithoutPolicy: where nobody installed the policy, or took it away, status refuses.
func TestEmptiedListWithoutPolicy(t *testing.T) {
	w := alone(t)
	w.withoutPolicy()

	key := "team-" + w.id
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b", key+"=yes")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"), entry("writer-", []string{"create pods"}, ops+"/op"))

	w.template("probe", entry("probe-", []string{"get services"}, ops+"/probe"))

	in := w.selecting("i", "t", fmt.Sprintf(`{%q:"yes"}`, key), a)
	w.says(in, yes, "ScopingSuccessful")
	w.Change(in, func() { in.Spec.Namespaces, in.Spec.NamespaceSelector = nil, nil })

	refuses := func() {
		t.Helper()

		// Only then: what Ambit has not heard of yet, it cannot go by.
		w.says(in, no, "ScopingFailed", allow, "the whole cluster", "delete the instance")

		late := w.Namespace("late", key+"=yes")
		// All instances are planned at once: what serves the namespace for another one has seen it.
		probe := w.instance("probe", "probe", late)
		w.says(probe, yes, "ScopingSuccessful")
		w.Remove(probe)
		w.binds("probe")
		w.binds("i", a, a, b, b)
		w.May(ops, "op", b, "get secrets")

		if w.Allowed(ops, "op", late, "get secrets") || in.Status.BoundNamespaces != 2 ||
			in.Status.Reach != operatorsv1alpha1.ReachNamespaces {
			t.Errorf("bound in %v, status %+v", w.bound("i"), in.Status)
		}
	}
	refuses()

	// The old namespaces stay served: drift is undone, and what the template says is followed.
	lost := w.bindingsIn(a)[0]
	w.Remove(&lost)
	w.binds("i", a, a, b, b)

	w.away()
	w.back()
	refuses()

	// Nor does it help to lose the status between the first binding and its first word.
	w.away()
	w.Change(in, func() {})

	in.Status = operatorsv1alpha1.ScopeInstanceStatus{}
	if err := w.Client.Status().Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}

	w.back()
	refuses()

	w.Change(in, func() { in.Annotations = map[string]string{allow: "true"} })
	w.binds("i", "", "")
	w.May(ops, "op", "", "get secrets")

	// An instance that is made anew is as its author wants it, whatever the old one of that name left behind.
	w.Change(in, func() { in.Spec.Namespaces = []string{a} })
	w.binds("i", a, a)
	w.away()

	orphan := metav1.DeletePropagationOrphan
	if err := w.Client.Delete(t.Context(), in, &client.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}

	w.gone(in)
	w.instance("i", "t")
	w.back()
	w.binds("i", "", "")
}

// withoutPolicy takes the policy away for the rest of the test.
func (w *world) withoutPolicy() {
	w.Helper()

	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "ambit-cluster-wide"}}
	w.get(binding)
	w.Remove(binding)

	w.Cleanup(func() {
		again := &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels}, Spec: binding.Spec,
		}
		if err := w.Client.Create(w.background(), again); err != nil {
			w.Errorf("putting the policy back: %v", err)
		}
	})

	// The API server goes on for a moment by the policies that it knew.
	probe := w.instance("probe", "nothing", "kube-public")
	w.Eventually("the policy is gone", func() error {
		w.get(probe)
		probe.Spec.Namespaces = nil

		return w.Client.Update(w.Context(), probe, client.DryRunAll)
	})
	w.Remove(probe)
}

func (w *world) bindingsIn(namespace string) []rbacv1.RoleBinding {
	w.Helper()

	list := &rbacv1.RoleBindingList{}
	if err := w.Client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{"ambit.dev/scope"}); err != nil {
		w.Fatal(err)
	}

	return slices.Clone(list.Items)
}
