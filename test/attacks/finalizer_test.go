package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// While Ambit is away, whoever may write scopes takes the finalizer off one, so that it goes and what it projected stays, for
// ever where Ambit writes as delegates only. The policy refuses that, in whatever way it is tried, and lets everybody else work:
// Kubernetes, those who edit the scope, and Ambit itself.
func TestFinalizerTakenOffWhileAmbitIsAway(t *testing.T) {
	w := beds.Alone(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets"}, member)

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
	// Of the legacy group, whose account is the one called ambit.
	was := &namespacescopev1alpha1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "older"}}
	was.Spec.ManualManagement, was.Spec.NamespaceMembers = true, []string{ops}
	w.Make(testbed.Account(ops, "ambit"), was)
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", member, "get secrets")
	w.Eventually("both scopes are held", func() error { return held(w, nss, was) })
	away(w)

	mallory := w.Tenant("mallory-"+ops, ops)
	steals := func() {
		t.Helper()

		for _, obj := range []client.Object{nss, was} {
			refusals := 0

			for how, try := range withoutFinalizer(t.Context(), mallory, obj) {
				err := try()
				if err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'ambit-finalizer'") {
					refusals++
				}

				if lost := held(w, obj); lost != nil {
					t.Fatalf("%T, by %s, which was answered with %v: %v", obj, how, err, lost)
				}
			}

			// Of an object on its way out the API server itself refuses to take another finalizer instead.
			if refusals < 4 {
				t.Errorf("the policy refused %d tries", refusals)
			}
		}

		// A write of the status says nothing of the metadata, whatever it holds.
		status := nss.DeepCopy()
		status.Finalizers = nil

		if err := errors.Join(w.Client.Status().Update(t.Context(), status), held(w, nss)); err != nil {
			t.Error(err)
		}
	}

	steals()

	// Who keeps the finalizer may write what they could before.
	mine := nss.DeepCopy()
	mine.Labels, mine.Finalizers = map[string]string{"touched": "yes"}, append(mine.Finalizers, "example.com/mine")

	if err := mallory.Update(t.Context(), mine); err != nil {
		t.Errorf("another finalizer beside Ambit's: %v", err)
	}

	mine.Finalizers = []string{operatorv1.Finalizer}
	if err := mallory.Update(t.Context(), mine); err != nil {
		t.Errorf("another finalizer off again: %v", err)
	}

	for _, obj := range []client.Object{nss, was} {
		if err := mallory.Delete(t.Context(), obj, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}

	steals()

	back(w)
	w.Eventually("the scope goes", w.Gone(nss))
	w.Eventually("the older scope goes", w.Gone(was))
	w.MayNot(ops, "op", member, "get secrets")

	if left := copies(w, member); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// withoutFinalizer are tries to take Ambit's finalizer off an object, in every way that the API has.
func withoutFinalizer(ctx context.Context, c client.Client, of client.Object) map[string]func() error {
	patch := func(kind types.PatchType, body string, options ...client.PatchOption) func() error {
		return func() error {
			obj, _ := of.DeepCopyObject().(client.Object)

			return c.Patch(ctx, obj, client.RawPatch(kind, []byte(body)), options...)
		}
	}
	update := func(finalizers ...string) func() error {
		return func() error {
			obj, _ := of.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}

			obj.SetFinalizers(finalizers)

			return c.Update(ctx, obj)
		}
	}

	kind := operatorv1.GroupVersion.String()
	if _, is := of.(*namespacescopev1alpha1.NamespaceScope); is {
		kind = namespacescopev1alpha1.GroupVersion.String()
	}

	return map[string]func() error{
		"a merge patch":                   patch(types.MergePatchType, `{"metadata":{"finalizers":null}}`),
		"a merge patch with another":      patch(types.MergePatchType, `{"metadata":{"finalizers":["example.com/mine"]}}`),
		"a JSON patch":                    patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/finalizers"}]`),
		"a JSON patch of the first":       patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/finalizers/0"}]`),
		"an update":                       update(),
		"an update with another":          update("example.com/mine"),
		"an update with one like it":      update(operatorv1.Finalizer + ".example.com"),
		"an update with it in other case": update("F" + operatorv1.Finalizer[1:]),
		"server-side apply as Ambit": patch(types.ApplyPatchType,
			`{"apiVersion":"`+kind+`","kind":"NamespaceScope","metadata":{"name":"`+of.GetName()+`","finalizers":[]}}`,
			client.FieldOwner("ambit"), client.ForceOwnership),
	}
}

func held(w *testbed.World, objects ...client.Object) error {
	for _, obj := range objects {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}

		if !controllerutil.ContainsFinalizer(obj, operatorv1.Finalizer) {
			return fmt.Errorf("%T has the finalizers %q", obj, obj.GetFinalizers())
		}
	}

	return nil
}

// away stops the manager of a cluster that the test has alone; it is back at the end of the test at the latest.
func away(w *testbed.World) {
	w.Helper()

	if err := w.Manager.Kill(); err != nil {
		w.Fatal(err)
	}

	w.Cleanup(func() {
		// One that runs already is left alone.
		if w.Manager.PID() == 0 {
			back(w)
		}
	})
}

// back starts it again and waits until it works.
func back(w *testbed.World) {
	w.Helper()

	if err := w.Manager.Start(); err != nil {
		w.Fatal(err)
	}

	w.Eventually("Ambit works again", func() error { return w.Manager.Works("namespacescope") })
}

// What a scope left behind that went without Ambit, because an administrator let it go or the policy was not there, is reported
// where the scope was, where something is left of it, and by ambit tree, with what to do about it; and that works.
func TestOrphansAreReported(t *testing.T) {
	w := beds.Alone(t, "delegated")
	ops, a, b := w.Namespace("home"), w.Namespace("a"), w.Namespace("b")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets"}, a, b)

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", a, b))
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", b, "get secrets")
	hash := copyOf(w, ops, "op-role", a).Labels["ambit.dev/scope"]
	away(w)
	w.Remove(nss)
	w.Change(nss, func() { nss.Finalizers = nil })
	w.Eventually("the scope goes", w.Gone(nss))

	tells := func(ops string) bool {
		out, code := w.Ambit("tree", ops+"/scope")

		return code == 0 && strings.Contains(out, "OrphansLeft") && strings.Contains(out, a+"  ✗") && strings.Contains(out, b+"  ✗") &&
			strings.Contains(out, "ambit.dev/scope="+hash)
	}
	if !tells(ops) {
		out, code := w.Ambit("tree")
		t.Errorf("ambit tree says nothing: %d\n%s", code, out)
	}

	back(w)

	for _, namespace := range []string{ops, a, b} {
		w.Eventually("an event in "+namespace, func() error {
			list := &eventsv1.EventList{}
			if err := w.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				return err
			}

			for _, e := range list.Items {
				if e.Reason == "OrphansLeft" && e.Type == "Warning" && strings.Contains(e.Note, ops+"/scope is gone") &&
					strings.Contains(e.Note, "kubectl delete rolebindings,roles -") && strings.Contains(e.Note, hash) {
					return nil
				}
			}

			return errMissing
		})
	}

	if !w.Allowed(ops, "op", a, "get secrets") {
		t.Error("nothing was left, so this test says nothing")
	}

	// One way out: what the event says. The other: the scope once more.
	here := []client.DeleteAllOfOption{client.InNamespace(a), client.MatchingLabels{"ambit.dev/scope": hash}}
	for _, obj := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}} {
		if err := w.Client.DeleteAllOf(t.Context(), obj, here...); err != nil {
			t.Fatal(err)
		}
	}

	w.MayNot(ops, "op", a, "get secrets")

	again := w.Scope(ops, testbed.DelegatedBy("delegate"))
	w.Reports(again, yes, "Reconciled")
	w.MayNot(ops, "op", b, "get secrets")
	w.Remove(again)
	w.Eventually("the scope goes", w.Gone(again))

	if left := append(copies(w, a), copies(w, b)...); len(left) > 0 || tells(ops) {
		t.Errorf("left are %v", left)
	}
}
