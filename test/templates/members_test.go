package templates_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// label puts a label on a namespace, or takes it off when value is empty.
func (w *world) label(namespace, key, value string) {
	w.Helper()

	quoted := "null"
	if value != "" {
		quoted = fmt.Sprintf("%q", value)
	}

	w.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, quoted))
}

// patch changes an object as cluster-admin.
func (w *world) patch(obj client.Object, merge string) {
	w.Helper()

	patch := client.RawPatch(types.MergePatchType, []byte(merge))
	if err := w.Client.Patch(w.Context(), obj, patch, client.FieldOwner("somebody")); err != nil {
		w.Fatalf("patching %T %s: %v", obj, obj.GetName(), err)
	}
}

func TestSelectorFollowsLabels(t *testing.T) {
	for name, selector := range map[string]string{
		"Shorthand": `{%q:"yes"}`, "MatchLabels": `{"matchLabels":{%q:"yes"}}`,
		"MatchExpressions": `{"matchExpressions":[{"key":%q,"operator":"In","values":["yes"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			key := "team-" + w.id
			ops, named, late := w.Namespace("ops"), w.Namespace("named"), w.Namespace("late")
			labelled := w.Namespace("labelled", key+"=yes")
			w.Make(testbed.Account(ops, "op"))
			w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

			in := w.selecting("i", "t", fmt.Sprintf(selector, key), named)
			w.says(in, yes, "ScopingSuccessful")
			w.binds("i", named, labelled)

			w.label(late, key, "yes")
			w.binds("i", named, labelled, late)
			w.May(ops, "op", late, "get secrets")

			born := w.Namespace("born", key+"=yes")
			w.binds("i", named, labelled, late, born)

			w.label(late, key, "no")
			w.binds("i", named, labelled, born)
			w.MayNot(ops, "op", late, "get secrets")

			w.label(labelled, key, "")
			w.binds("i", named, born)
			w.Eventually("the status counts", func() error {
				if w.get(in); in.Status.BoundNamespaces != 2 || in.Status.Reach != operatorsv1alpha1.ReachNamespaces {
					return fmt.Errorf("%+v", in.Status)
				}

				return nil
			})
		})
	}
}

// TestLabelsNeverSelectSystemNamespaces: whoever may label a namespace must not thereby hand out rights in the system's own.
func TestLabelsNeverSelectSystemNamespaces(t *testing.T) {
	w := begin(t)
	key := "team-" + w.id
	ops, a := w.Namespace("ops"), w.Namespace("a", key+"=yes")
	openshift := "openshift-" + w.id
	w.MakeNamespace(openshift)

	for _, ns := range []string{"kube-system", "kube-public", "ambit-system", openshift} {
		w.label(ns, key, "yes")
		t.Cleanup(func() {
			off := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, key))
			if err := w.Client.Patch(w.background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, off); err != nil {
				t.Errorf("taking the label off: %v", err)
			}
		})
	}

	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	w.says(w.selecting("i", "t", fmt.Sprintf(`{%q:"yes"}`, key)), yes, "ScopingSuccessful")
	w.binds("i", a)

	// By name, they are the author's own decision.
	w.instance("named", "t", "kube-public", openshift)
	w.binds("named", "kube-public", openshift)
}

// TestNothingSelectedBindsNothing: what selects nothing must not be taken for "no selector", which is the whole cluster.
func TestNothingSelectedBindsNothing(t *testing.T) {
	for name, tc := range map[string]struct{ selector, says string }{
		"MatchesNothing": {`{"nobody.example.com/has":"this"}`, "matches no namespace"},
		"Empty":          {`{}`, "empty"},
		"EmptyParts":     {`{"matchLabels":{},"matchExpressions":[]}`, "empty"},
		"Mixed":          {`{"matchLabels":{"a":"b"},"c":"d"}`, "selects nothing"},
		"Unreadable":     {`{"matchExpressions":[{"key":"a","operator":"Nearly"}]}`, "selects nothing"},
		"NotALabel":      {`{"a":{"b":"c"}}`, "selects nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, a := w.Namespace("ops"), w.Namespace("a")
			w.Make(testbed.Account(ops, "op"))
			w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

			in := w.selecting("i", "t", tc.selector)
			w.says(in, no, "ScopingFailed", tc.says)

			if got := w.bound("i"); len(got) > 0 || in.Status.Reach != operatorsv1alpha1.ReachNamespaces ||
				in.Status.BoundNamespaces != 0 {
				t.Errorf("bound in %q, status %+v", got, in.Status)
			}

			// The named ones are served all the same.
			w.Change(in, func() { in.Spec.Namespaces = []string{a} })
			w.binds("i", a)
			w.Eventually("the status of the named namespace", func() error {
				if w.get(in); in.Status.BoundNamespaces != 1 || in.Status.ObservedGeneration != in.Generation {
					return fmt.Errorf("%+v", in.Status)
				}

				return nil
			})
		})
	}
}

func TestOneBadNamespaceStopsNoOther(t *testing.T) {
	w := begin(t)
	ops, good, going := w.Namespace("ops"), w.Namespace("good"), w.Namespace("going")
	missing := "missing-" + w.id

	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	w.instance("i", "t", good)
	w.binds("i", good)

	// A namespace is kept on its way out.
	hold := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: going, Name: "hold", Finalizers: []string{"test.example.com/hold"},
	}}
	w.Make(hold)
	w.Remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: going}})

	in := &operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: w.name("i")}}
	w.Change(in, func() { in.Spec.Namespaces = []string{missing, going, good} })

	// Ambit may hear of the instance before it hears of the namespaces.
	want := map[string]string{missing: "NamespaceNotFound", going: "NamespaceTerminating"}

	w.says(in, no, "ScopingFailed", "2 of 3 namespaces")
	w.Eventually("each failure has its reason", func() error {
		w.get(in)

		reasons := map[string]string{}
		for _, f := range in.Status.FailedNamespaces {
			reasons[f.Namespace] = f.Reason
		}

		if !maps.Equal(reasons, want) || in.Status.BoundNamespaces != 1 || !slices.Equal(w.bound("i"), []string{good}) {
			return fmt.Errorf("bound in %v, status %+v", w.bound("i"), in.Status)
		}

		return nil
	})

	// Each is served once its problem is gone.
	w.MakeNamespace(missing)
	w.binds("i", good, missing)
	w.patch(hold, `{"metadata":{"finalizers":null}}`)
	w.Eventually("the namespace goes", func() error {
		err := w.Client.Get(t.Context(), client.ObjectKey{Name: going}, &corev1.Namespace{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %w", err)
		}

		return nil
	})
	w.Eventually("it is told as missing", func() error {
		if w.get(in); len(in.Status.FailedNamespaces) != 1 || in.Status.FailedNamespaces[0].Reason != "NamespaceNotFound" {
			return fmt.Errorf("%+v", in.Status)
		}

		return nil
	})
	w.MakeNamespace(going)
	w.says(in, yes, "ScopingSuccessful")
	w.May(ops, "op", going, "get secrets")
}
