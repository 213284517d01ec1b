package namespacescope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

func TestStatusIsWrittenOnlyWhenItDiffers(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(ops, "op")

	marker := role(ops, "marker-role", "get pods")
	w.grant(ops, "marker", marker.Name, "get pods")

	nss := w.scope(ops, "scope", withMarker(members(b, a)))
	w.projectedRole(ops, marker.Name, a)
	w.ready(nss)
	// The watches of bindings and of roles do not wait for each other, so a binding may be there for a moment without its role.
	w.reports(nss, "RolesFound", metav1.ConditionTrue, "AllFound")

	before := nss.DeepCopy()

	// All of this is looked at, and none of it changes what the status says.
	another := deployment(ops, "another")
	another.Spec.Template.Spec.ServiceAccountName = "op"
	w.create(another)
	w.delete(another)
	w.delete(w.projectedRole(ops, "secrets", a))
	w.relabel(b, "some", "label")
	w.change(configMap(ops, defaultList), func() {})
	// Nor does this, and it shows that the rest was seen.
	w.change(marker, func() { marker.Rules = append(marker.Rules, rule("get services")) })
	w.eventually("the rest was seen", func() error {
		if n := len(w.projectedRole(ops, marker.Name, a).Rules); n != 2 {
			return fmt.Errorf("the copy has %d rules", n)
		}

		return nil
	})

	w.steadily("the scope was not written", func() error {
		w.mustGet(nss)

		// On a busy machine, a write may take longer than it is waited for, and the status says so meanwhile.
		if nss.ResourceVersion != before.ResourceVersion && readySince(nss).Equal(readySince(before)) {
			return fmt.Errorf("got  %+v\nwant %+v", nss.Status, before.Status)
		}

		return nil
	})
}

// readySince is when the scope became ready, or ceased to be.
func readySince(nss *operatorv1.NamespaceScope) *metav1.Time {
	if ready := meta.FindStatusCondition(nss.Status.Conditions, "Ready"); ready != nil {
		return &ready.LastTransitionTime
	}

	return nil
}

func TestEventsSayWhatHappened(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	nss := w.scope(ops, "scope", members(a))
	w.ready(nss)
	w.event(ops, "NamespaceAdded", a)

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)

	w.setMembers(nss, b)
	w.restarted(reader, 1)
	w.event(ops, "NamespaceAdded", b)
	w.event(ops, "NamespaceRemoved", a)
	w.event(ops, "WorkloadRestarted", "Deployment reader")
}

// TestEventsNameEachReaderThatRestarts: for one list, some restart later than others, and the status says nothing new meanwhile.
func TestEventsNameEachReaderThatRestarts(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	nss := w.scope(ops, "scope", members())
	w.ready(nss)

	first, second := deployment(ops, "first", readsList), deployment(ops, "second", readsList)
	w.run(first)
	w.running(ops, 1)
	w.setMembers(nss, a)
	w.restarted(first, 1)

	w.run(second)
	w.onePod(ops, "second")
	w.setMembers(nss, b)
	w.restarted(second, 1)
	w.event(ops, "WorkloadRestarted", "Deployment second")
	w.restarted(first, 2)

	w.eventually("both restarts of the first are told", func() error {
		var events corev1.EventList
		if err := w.client.List(w.Context(), &events, client.InNamespace(ops)); err != nil {
			return err
		}

		events.Items = slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason != "WorkloadRestarted" || !strings.Contains(e.Message, "Deployment first")
		})
		if len(events.Items) != 2 {
			return fmt.Errorf("%+v", events.Items)
		}

		return nil
	})
}
