package reconcile_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const targetsFound = "TargetNamespacesFound"

// groupAsks does something that a running manager has to hear of: it asks for a plan of what is installed in the namespace ops.
func (w *world) groupAsks(change func(w *world)) {
	w.Helper()
	w.asksFor(scope.Installs.In(w.ns(ops)), change)
}

// annotated is what the ClusterServiceVersion and the pods of its Deployment say of their group, and the targets in the status
// of that; the case fails where these differ.
func (w *world) annotated() string {
	w.Helper()

	var g operatorsv1.OperatorGroup
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "group"}, &g); err != nil {
		w.Fatal(err)
	}

	want := map[string]string{
		"olm.operatorGroup": g.Name, "olm.operatorNamespace": g.Namespace,
		"olm.targetNamespaces": strings.Join(g.Status.Namespaces, ","),
	}

	for what, annotations := range map[string]map[string]string{
		"ClusterServiceVersion": w.versionCalled("op.v1").Annotations, "pods": w.live("op").Spec.Template.Annotations,
	} {
		for key := range want {
			if got, found := annotations[key]; !found || got != want[key] {
				w.Errorf("annotation %s of the %s is %q, want %q", key, what, got, want[key])
			}
		}
	}

	return w.called(want["olm.targetNamespaces"])
}

// watchesAs are the targets that the annotation of the ClusterServiceVersion says.
func (w *world) watchesAs() string {
	w.Helper()

	return w.called(w.versionCalled("op.v1").Annotations["olm.targetNamespaces"])
}

// TestSelectors has both forms of a selector, and each way in which one chooses nothing. Nothing is never everything.
func TestSelectors(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		selector string
		// says is why it chooses nothing; the one labelled namespace where there is no such reason.
		says string
	}{
		"matchLabels":    {selector: `{"matchLabels":{"team":"blue>"}}`},
		"shorthand":      {selector: `{"team":"blue>"}`},
		"no match":       {`{"matchLabels":{"team":"no"}}`, "no namespace has the labels"},
		"empty":          {`{}`, "empty"},
		"empty inside":   {`{"matchLabels":{}}`, "empty"},
		"both forms":     {`{"matchLabels":{"team":"blue>"},"team":"blue>"}`, "mixes"},
		"not a label":    {`{"team":"not a label"}`, "cannot be read"},
		"system by name": {`{"kubernetes.io/metadata.name":"kube-system"}`, "no namespace has the labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", `{"selector":`+tc.selector+`}`)
			w.csv("*")

			if tc.says == "" {
				w.installed()
				is(w, "status.namespaces", w.targets("group"), `["c"]`)
				is(w, "what the operator is told", w.annotated(), "c")
				is(w, "where it has permissions", w.served(), []string{"c", "ops"})
				w.May(w.ns(ops), "op", w.ns("c"), "get secrets")

				return
			}

			if err := w.client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}); err != nil {
				t.Fatal(err)
			}

			w.reconcileGroup()

			condition, message := w.groupCondition(targetsFound)
			is(w, targetsFound, condition, "False NoTargetNamespaces")
			w.names("the condition", message, tc.says)
			is(w, "phase", w.phase(), "Failed NoTargetNamespaces")
			w.names("the message", w.message(), tc.says)
			is(w, "status.namespaces", w.targets("group"), `[]`)
			is(w, "where it has permissions", w.served(), []string{})
		})
	}
}

// TestAllInTheList: an empty name among the targets would be all namespaces to an operator.
func TestAllInTheList(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", `{"targetNamespaces":["c>",""]}`)
	w.csv("*")
	w.reconcileGroup()

	condition, message := w.groupCondition(targetsFound)
	is(w, targetsFound, condition, "False NoTargetNamespaces")
	w.names("the condition", message, `must not contain ""`)
	is(w, "phase", w.phase(), "Failed NoTargetNamespaces")
	is(w, "where it has permissions", w.served(), []string{})
	is(w, "what the operator is told", w.told(), "-")

	w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["c>"]}`) })
	w.installed()
	is(w, "status.namespaces", w.targets("group"), `["c"]`)

	condition, _ = w.groupCondition(targetsFound)
	is(w, targetsFound+" afterwards", condition, "-")
}

// TestTargetThatAppearsLater: a target that does not exist is left out of what the operator is told until it does.
func TestTargetThatAppearsLater(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", `{"targetNamespaces":["a>","late>"]}`)
	w.csv("*")
	w.installed()
	is(w, "status.namespaces", w.targets("group"), `["a" "late"]`)
	is(w, "what the operator is told", w.told(), "a")
	is(w, "what its version says", w.watchesAs(), "a")
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})

	w.groupAsks(func(w *world) { w.namespaces("late") })
	w.reconcileGroup()
	is(w, "what the operator is told once it exists", w.annotated(), "a,late")
	is(w, "where it has permissions once it exists", w.served(), []string{"a", "late", "ops"})
}

// TestTargetsThatGo: what was granted in a target goes with its label, and the last one leaves nothing that means everything.
func TestTargetsThatGo(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", `{"selector":{"matchLabels":{"team":"blue>"}}}`)
	w.csv("*")
	w.installed()
	is(w, "what the operator is told", w.annotated(), "c")

	c := w.object("c")
	w.groupAsks(func(w *world) { w.Change(c, func() { delete(c.Labels, "team") }) })
	w.reconcileGroup()
	is(w, "phase", w.phase(), "Failed NoTargetNamespaces")
	is(w, "status.namespaces", w.targets("group"), `[]`)
	is(w, "where it has permissions", w.served(), []string{})
	is(w, "what the operator is told without a target", w.told(), "c")
	is(w, "what its version says", w.watchesAs(), "c")

	w.groupAsks(func(w *world) { w.Change(c, func() { c.Labels["team"] = w.ns("blue") }) })
	w.reconcileGroup()
	is(w, "phase with a target", w.phase(), succeeded)
	is(w, "where it has permissions with a target", w.served(), []string{"c", "ops"})
}

// TestNoTargetThatExists: an operator none of whose targets is there is told of them all the same, until one is. Its pods would
// otherwise read an empty list, which means all namespaces.
func TestNoTargetThatExists(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", `{"targetNamespaces":["late>","typo>"]}`)
	w.csv("*")
	w.installed()
	is(w, "status.namespaces", w.targets("group"), `["late" "typo"]`)
	is(w, "what the operator is told", w.annotated(), "late,typo")
	is(w, "the generation of the Deployment", w.live("op").Generation, 1)
	is(w, "where it has permissions", w.served(), []string{"ops"})

	w.groupAsks(func(w *world) { w.namespaces("late") })
	w.reconcileGroup()
	is(w, "what the operator is told once one exists", w.told(), "late")
	is(w, "what its version says once one exists", w.watchesAs(), "late")
	is(w, "where it has permissions once one exists", w.served(), []string{"late", "ops"})
}

// TestNarrowedToNothing: when the only target that is there, or all namespaces, give way to one that is not there, the operator
// may do nothing any more in what was taken away.
func TestNarrowedToNothing(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		group  string
		before []string
	}{
		"one": {`{"targetNamespaces":["a>"]}`, []string{"a", "ops"}},
		"all": {`{}`, []string{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", tc.group)
			w.csv("*")
			w.installed()
			is(w, "where it has permissions before", w.served(), tc.before)

			w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["typo>"]}`) })
			w.reconcileGroup()
			is(w, "status.namespaces", w.targets("group"), `["typo"]`)
			is(w, "what the operator is told", w.annotated(), "typo")
			is(w, "where it has permissions", w.served(), []string{"ops"})
			w.MayNot(w.ns(ops), "op", w.ns("a"), "get secrets")
			w.May(w.ns(ops), "op", w.ns(ops), "get secrets")
		})
	}
}

// TestLegacyVersions: a group may be written as v1alpha2 and as v1alpha1.
func TestLegacyVersions(t *testing.T) {
	t.Parallel()

	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)

			g := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(w.long(`{"apiVersion":"operators.coreos.com/`+version+`","kind":"OperatorGroup",
				"metadata":{"name":"group","namespace":"ops>"},"spec":{"targetNamespaces":["a>"]}}`)), g); err != nil {
				t.Fatal(err)
			}

			w.groupAsks(func(w *world) { w.Make(g) })
			w.reconcileGroup()
			is(w, "status.namespaces", w.targets("group"), `["a"]`)
		})
	}
}
