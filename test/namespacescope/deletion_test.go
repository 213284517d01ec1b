package namespacescope_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletedScopeLeavesNothingBehind(t *testing.T) {
	w := begin(t)
	home, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(home, "op")
	nss := w.scope(home, "scope", members(a, b))
	w.ready(nss)
	w.may(home, "op", a, "get secrets")
	w.may(home, "op", b, "get secrets")

	reader, bystander := deployment(home, "reader", readsList), deployment(home, "bystander")
	w.run(reader, bystander)
	w.running(home, 3)

	w.delete(nss)

	w.gone(nss)
	w.gone(configMap(home, defaultList))
	w.restarted(reader, 1)

	for _, member := range []string{a, b} {
		w.mayNot(home, "op", member, "get secrets")

		if roles, bindings := w.projections(member); len(roles)+len(bindings) > 0 {
			t.Errorf("left in %s: %v %v", member, roles, bindings)
		}
	}

	w.may(home, "op", home, "get secrets")

	w.steadily("one restart, of the reader", func() error {
		return errors.Join(w.checkRestarts(reader, 1), w.checkRestarts(bystander, 0))
	})
}

func TestScopeCanBeMadeAgain(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	w.operator(home, "op")

	for range 3 {
		nss := w.scope(home, "scope", members(member))
		w.ready(nss)
		w.lists(home, defaultList, home, member)
		w.may(home, "op", member, "get secrets")

		w.delete(nss)
		w.gone(nss)
		w.mayNot(home, "op", member, "get secrets")
		w.gone(configMap(home, defaultList))
	}
}

func TestDeletedScopeRestartsReadersOfAListThatStays(t *testing.T) {
	w := begin(t)
	home, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	one, two := w.scope(home, "one", members(a)), w.scope(home, "two", members(b))
	w.ready(one)
	w.ready(two)
	w.lists(home, defaultList, home, a, b)

	reader := deployment(home, "reader", readsList)
	w.run(reader)
	w.running(home, 1)

	w.delete(one)

	w.gone(one)
	w.lists(home, defaultList, home, b)
	w.restarted(reader, 1)
}

func TestDeletedScopeEvictsPodsOfOLMOnce(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(home, "scope", spec{})
	w.ready(nss)

	// A reader that has just restarted has to wait for its next turn, and the scope stays until then.
	waiting := deployment(home, "waiting", readsList)
	w.run(waiting)
	w.running(home, 1)
	w.setMembers(nss, member)
	w.restarted(waiting, 1)

	d := deployment(home, "op", readsList)
	ownedByCSV(d)
	w.run(d)

	first := w.onePod(home, "op")

	// The new pod is as old as the deletion.
	secondBegins()
	w.delete(nss)

	second := w.replaced(first)
	w.gone(nss)

	// The scope is gone, so nothing can be expected of Ambit any more; what it does wrong it has done by now.
	w.steadily("the new pod began without the list", func() error { return w.samePods(second) })
}

func TestRemovedMemberIsCleanedUp(t *testing.T) {
	w := begin(t)
	home, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(home, "op")
	nss := w.scope(home, "scope", members(a, b))
	w.ready(nss)
	w.may(home, "op", b, "get secrets")

	reader := deployment(home, "reader", readsList)
	w.run(reader)
	w.running(home, 2)

	w.setMembers(nss, a)

	w.lists(home, defaultList, home, a)
	w.mayNot(home, "op", b, "get secrets")
	w.restarted(reader, 1)
	w.event(home, "NamespaceRemoved", b)
	w.may(home, "op", a, "get secrets")
	w.ready(nss)
	w.equal("status.validatedMembers", nss.Status.ValidatedMembers, []string{a, home})

	if roles, bindings := w.projections(b); len(roles)+len(bindings) > 0 {
		t.Errorf("left in %s: %v %v", b, roles, bindings)
	}
}

func TestScopeWhoseMembersAreGoneCanBeDeleted(t *testing.T) {
	w := begin(t)
	home, gone, ending := w.namespace("home"), w.namespace("gone"), w.namespace("ending")
	w.operator(home, "op")
	nss := w.scope(home, "scope", members(gone, ending))
	w.ready(nss)

	hold := configMap(ending, "hold")
	hold.Finalizers = []string{"namespacescope-test/hold"}
	w.create(hold)
	w.Cleanup(func() {
		free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
		if err := w.client.Patch(context.Background(), hold, free); err != nil {
			t.Error(err)
		}
	})

	for _, name := range []string{gone, ending} {
		w.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}

	w.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gone}})
	w.delete(nss)
	w.gone(nss)
	w.gone(configMap(home, defaultList))
}

func TestDeletedHomeTakesItsProjectionsAlong(t *testing.T) {
	w := begin(t)
	w.needs(outlivesHomes, "its rights in the home go with the home")

	home, member := w.namespace("home"), w.namespace("member")
	w.operator(home, "op")
	w.run(deployment(home, "reader", readsList))
	w.ready(w.scope(home, "one", members(member)))
	w.ready(w.scope(home, "two", members(member)))
	w.may(home, "op", member, "get secrets")

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}
	w.delete(ns)

	w.gone(ns)
	w.eventually("nothing is left", func() error {
		roles, bindings := w.projections(member)
		if len(roles)+len(bindings) > 0 {
			return fmt.Errorf("left in %s: %d roles, %d bindings", member, len(roles), len(bindings))
		}

		return nil
	})
	w.mayNot(home, "op", member, "get secrets")
}

func TestScopeWithARefusedMemberCanBeDeleted(t *testing.T) {
	w := begin(t)
	home, refused := w.namespace("home"), w.namespace("refused", refusesRoles)
	w.operator(home, "op")
	w.grant(home, "op", "refused-role", "get pods")
	w.untilRefusing(refused)

	nss := w.scope(home, "scope", members(refused))
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
	w.may(home, "op", refused, "get secrets")

	w.delete(nss)
	w.gone(nss)
	w.mayNot(home, "op", refused, "get secrets")
}

func TestProjectionsWithoutAScopeAreRemoved(t *testing.T) {
	w := begin(t)
	w.needs(writesByItself, "with the scope goes the name of the account that may remove them")

	home, member := w.namespace("home"), w.namespace("member")
	w.operator(home, "op")
	nss := w.scope(home, "scope", members(member))
	w.ready(nss)
	w.may(home, "op", member, "get secrets")

	// Somebody in a hurry takes the finalizer off.
	w.delete(nss)

	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
	if err := w.client.Patch(t.Context(), nss, free); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}

	w.gone(nss)
	w.mayNot(home, "op", member, "get secrets")
	w.gone(configMap(home, defaultList))
}
