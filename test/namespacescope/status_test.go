package namespacescope_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

		if nss.ResourceVersion != before.ResourceVersion {
			return fmt.Errorf("got  %+v\nwant %+v", nss.Status, before.Status)
		}

		return nil
	})
}

func TestStatusOfAFailureIsStable(t *testing.T) {
	w := begin(t)
	ops, refused := w.namespace("home"), w.namespace("refused", refusesRoles)
	w.operator(ops, "op")
	w.grant(ops, "op", "refused-role", "get pods")
	w.untilRefusing(refused)

	nss := w.scope(ops, "scope", members(append(names(3, "missing"), refused)...))
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
	w.lists(ops, defaultList, ops)

	before := nss.DeepCopy()

	// Ambit tries again whenever it has something to put right.
	for range 5 {
		cm := configMap(ops, defaultList)
		w.change(cm, func() { cm.Data["namespaces"] = "wrong" })
		w.lists(ops, defaultList, ops)
		w.mustGet(nss)

		if nss.ResourceVersion != before.ResourceVersion {
			t.Fatalf("the status changed although the problem did not:\n%+v\n%+v", before.Status, nss.Status)
		}
	}
}

func TestStatusSpeaksOfAGeneration(t *testing.T) {
	w := begin(t)
	ops, a := w.namespace("home"), w.namespace("a")
	nss := w.scope(ops, "scope", spec{})
	w.ready(nss)
	w.equal("status.observedGeneration", nss.Status.ObservedGeneration, nss.Generation)

	w.setMembers(nss, a)
	w.ready(nss)
	w.equal("status.observedGeneration", nss.Status.ObservedGeneration, int64(2))
	w.equal("status.validatedMembers", nss.Status.ValidatedMembers, []string{a, ops})
}

func TestStatusListsAreSorted(t *testing.T) {
	w := begin(t)
	ops, missing := w.namespace("home"), names(5, "missing")
	z, a := w.namespace("z", refusesRoles), w.namespace("a", refusesRoles)
	w.operator(ops, "op")
	w.grant(ops, "op", "refused-b", "get pods")
	w.grant(ops, "op", "refused-a", "get pods")
	w.untilRefusing(z)
	w.untilRefusing(a)

	s := members(missing[3], z, missing[1], a, missing[4])
	s.ServiceAccountMembers = []string{"z", "a"}
	nss := w.scope(ops, "scope", s)
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")

	var failed []string
	for _, m := range nss.Status.FailedMembers {
		failed = append(failed, m.Namespace)
	}

	var conditions []string
	for _, c := range nss.Status.Conditions {
		conditions = append(conditions, c.Type)
	}

	w.equal("failed members", len(failed), 5)
	w.equal("unprojected roles", len(nss.Status.UnprojectedRoles), 4)

	for what, list := range map[string][]string{
		"failedMembers": failed, "unprojectedRoles": nss.Status.UnprojectedRoles, "conditions": conditions,
	} {
		if !slices.IsSorted(list) {
			t.Errorf("%s are not sorted: %v", what, list)
		}
	}
}

func TestFailedMembersAreCappedAndCounted(t *testing.T) {
	w := begin(t)
	ops, missing := w.namespace("home"), names(60, "missing")
	nss := w.scope(ops, "scope", members(missing...))

	c := w.reports(nss, "Ready", metav1.ConditionFalse, w.absent("MembersFailed"))

	w.equal("the first of them", len(nss.Status.FailedMembers), 50)
	w.equal("the last that is listed", nss.Status.FailedMembers[49].Namespace, missing[49])

	var failed, all int
	if n, err := fmt.Sscanf(c.Message, "%d of %d members", &failed, &all); n != 2 || err != nil || failed != 60 || all != 61 {
		t.Errorf("the message should have the full count: %s", c.Message)
	}
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

func TestConditionOfASelectorGoesWithIt(t *testing.T) {
	w := begin(t)
	w.needs(readsEverything, sees)

	ops := w.namespace("home")
	nss := w.scope(ops, "scope", selecting(`{"nobody-has-this": "x"}`))
	w.reports(nss, "NamespacesSelected", metav1.ConditionFalse, "NothingSelected")

	w.change(nss, func() { nss.Spec.NamespaceSelector = nil })
	w.eventually("the condition goes", func() error {
		w.mustGet(nss)

		if slices.ContainsFunc(nss.Status.Conditions, isSelection) {
			return fmt.Errorf("conditions %+v", nss.Status.Conditions)
		}

		return nil
	})
}

func isSelection(c metav1.Condition) bool { return c.Type == "NamespacesSelected" }

func TestStatusThatSomebodyEditedIsWrittenAgain(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", members(member))
	w.ready(nss)

	nss.Status = operatorv1.NamespaceScopeStatus{ValidatedMembers: []string{"kube-system"}}
	if err := w.client.Status().Update(t.Context(), nss); err != nil {
		t.Fatal(err)
	}

	w.ready(nss)
	w.equal("status.validatedMembers", nss.Status.ValidatedMembers, []string{ops, member})
	w.lists(ops, defaultList, ops, member)
}
