package installs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// reaches waits until the status of a group has these target namespaces.
func (w *world) reaches(g *operatorsv1.OperatorGroup, want ...string) {
	w.Helper()

	want = slices.Sorted(slices.Values(want)) // What is the caller's stays as it is.

	w.Eventually(fmt.Sprintf("group %s reaches %q", g.Name, want), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		if got := g.Status.Namespaces; !slices.Equal(got, want) || g.Status.LastUpdated == nil {
			return fmt.Errorf("status is %+v", g.Status)
		}

		return nil
	})
}

// complains waits until a condition of a group says something.
func (w *world) complains(g *operatorsv1.OperatorGroup, condition string, status metav1.ConditionStatus, words string) {
	w.Helper()
	w.Eventually("group "+g.Name+" says "+condition, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		c := meta.FindStatusCondition(g.Status.Conditions, condition)
		if c == nil || c.Status != status || !strings.Contains(c.Message, words) {
			return fmt.Errorf("status is %+v", g.Status)
		}

		return nil
	})
}

const targetsFound = "TargetNamespacesFound"

// TestNamesWinOverTheSelector: with both given, the selector is not even read.
func TestNamesWinOverTheSelector(t *testing.T) {
	w := begin(t, "cluster")
	own, named := w.Namespace("own"), w.Namespace("named")
	labelled := w.Namespace("labelled", own+"=yes")

	spec := selecting(`{"matchLabels":{"` + own + `":"yes"}}`)
	spec.TargetNamespaces = []string{named}
	g := w.group(own, spec)
	w.reaches(g, named)

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)
	w.May(own, "op", named, "get secrets")

	if w.Allowed(own, "op", labelled, "get secrets") {
		t.Error("the selector was followed")
	}
}

// TestSelectors has both forms of a selector, and each way in which one chooses nothing. Nothing is never everything.
func TestSelectors(t *testing.T) {
	w := begin(t, "cluster")
	key := "key-" + w.Namespace("key")
	labelled := w.Namespace("labelled", key+"=true")

	for name, c := range map[string]struct {
		selector string
		want     []string
		says     string
	}{
		"matchLabels":    {`{"matchLabels":{"KEY":"true"}}`, []string{labelled}, ""},
		"shorthand":      {`{"KEY":"true"}`, []string{labelled}, ""},
		"no match":       {`{"matchLabels":{"KEY":"no"}}`, nil, "no namespace has the labels"},
		"empty":          {`{}`, nil, "empty"},
		"empty inside":   {`{"matchLabels":{}}`, nil, "empty"},
		"both forms":     {`{"matchLabels":{"KEY":"true"},"KEY":"true"}`, nil, "mixes"},
		"not a label":    {`{"KEY":"not a label"}`, nil, "cannot be read"},
		"system by name": {`{"kubernetes.io/metadata.name":"kube-system"}`, nil, "no namespace has the labels"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			own := w.Namespace("own")
			g := w.group(own, selecting(strings.ReplaceAll(c.selector, "KEY", key)))
			op := csv(own, "op.v1")
			w.Make(op)

			if c.says == "" {
				w.reaches(g, c.want...)
				w.succeeds(op)
				w.told(op, g)
				w.May(own, "op", labelled, "get secrets")

				return
			}

			w.complains(g, targetsFound, metav1.ConditionFalse, c.says)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonNoTargetNamespaces, c.says)

			if len(g.Status.Namespaces) > 0 || w.Allowed(own, "op", labelled, "get secrets") {
				t.Errorf("it reaches %q", g.Status.Namespaces)
			}
		})
	}
}

// TestAllInTheList: an empty name among the targets would be all namespaces to an operator.
func TestAllInTheList(t *testing.T) {
	w := begin(t, "cluster")
	own, other := w.Namespace("own"), w.Namespace("other")
	g := w.group(own, targets(other, ""))
	op := csv(own, "op.v1")
	w.Make(op)
	w.complains(g, targetsFound, metav1.ConditionFalse, `must not contain ""`)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonNoTargetNamespaces)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{other} })
	w.succeeds(op)
	w.reaches(g, other)

	if meta.FindStatusCondition(g.Status.Conditions, targetsFound) != nil {
		t.Error("the complaint stays")
	}
}

// TestLabelsThatChange: namespaces join and leave as their labels say, and the operator is told of each only while it may work
// there.
func TestLabelsThatChange(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	first := w.Namespace("first", own+"=yes")
	g := w.group(own, selecting(`{"`+own+`":"yes"}`))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	toldRight := w.watchTold(op)
	second := w.Namespace("second", own+"=yes")
	w.May(own, "op", second, "get secrets")
	w.reaches(g, first, second)
	w.told(op, g)

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first}}
	w.Change(ns, func() { delete(ns.Labels, own) })
	w.MayNot(own, "op", first, "get secrets")
	w.reaches(g, second)
	w.told(op, g)
	w.succeeds(op)

	w.Eventually("it is told of a namespace only while it has permissions there", toldRight)
}

// TestTargetThatAppearsLater: a target that does not exist is left out of what the operator is told until it does.
func TestTargetThatAppearsLater(t *testing.T) {
	w := begin(t, "cluster")
	own, there := w.Namespace("own"), w.Namespace("there")
	late := "late-" + own
	g := w.group(own, targets(there, late))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)
	w.reaches(g, there, late)

	if got := op.Annotations["olm.targetNamespaces"]; got != there {
		t.Errorf("told to watch %q", got)
	}

	w.MakeNamespace(late)
	w.May(own, "op", late, "get secrets")
	w.told(op, g)
}

// TestTargetsThatGo: what was granted in a target goes with it, and the last one leaves nothing that means everything.
func TestTargetsThatGo(t *testing.T) {
	w := begin(t, "cluster")
	own, a := w.Namespace("own"), w.Namespace("a", "goes="+"yes")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a}}
	w.Change(ns, func() { ns.Labels[own] = "yes" })

	g := w.group(own, selecting(`{"`+own+`":"yes"}`))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	w.Change(ns, func() { delete(ns.Labels, own) })
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonNoTargetNamespaces)
	w.MayNot(own, "op", a, "get secrets")
	w.reaches(g)

	if got := op.Annotations["olm.targetNamespaces"]; got == "" {
		t.Error("the operator is told to watch all namespaces")
	}

	w.Change(ns, func() { ns.Labels[own] = "yes" })
	w.succeeds(op)
	w.May(own, "op", a, "get secrets")
}

// TestLegacyVersions: a group may be written as v1alpha2 and as v1alpha1.
func TestLegacyVersions(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			w := begin(t, "cluster")
			own, target := w.Namespace("own"), w.Namespace("target")
			w.apply(fmt.Sprintf(`{"apiVersion":"operators.coreos.com/%s","kind":"OperatorGroup",
				"metadata":{"name":"group","namespace":%q},"spec":{"targetNamespaces":[%q]}}`, version, own, target))

			g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "group"}}
			w.reaches(g, target)
		})
	}
}
