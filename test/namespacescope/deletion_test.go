package namespacescope_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletedScopeLeavesNothingBehind(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(ops, "op")
	nss := w.scope(ops, "scope", members(a, b))
	w.ready(nss)
	w.may(ops, "op", a, "get secrets")
	w.may(ops, "op", b, "get secrets")

	reader, bystander := deployment(ops, "reader", readsList), deployment(ops, "bystander")
	w.run(reader, bystander)
	w.running(ops, 3)

	was := w.onePod(ops, "reader")

	w.delete(nss)

	w.gone(nss)
	w.gone(configMap(ops, defaultList))
	w.replaced(was)

	for _, member := range []string{a, b} {
		w.mayNot(ops, "op", member, "get secrets")

		if roles, bindings := w.projections(member); len(roles)+len(bindings) > 0 {
			t.Errorf("left in %s: %v %v", member, roles, bindings)
		}
	}

	w.may(ops, "op", ops, "get secrets")

	// Nothing was written into a template that would have to be taken out again.
	w.steadily("no template was touched", func() error {
		return errors.Join(w.checkRestarts(reader, 0), w.checkRestarts(bystander, 0))
	})
}

// What Ambit wrote into workloads goes with the last scope, in the write that makes them begin again.
func TestMarksOfRestartsGoWithTheScope(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", spec{})
	w.ready(nss)

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)
	w.setMembers(nss, member)
	w.restarted(reader, 1)
	w.rolledOut(reader)

	was := w.onePod(ops, "reader")

	w.delete(nss)
	w.gone(nss)
	w.replaced(was)
	w.rolledOut(reader)
	w.mustGet(reader)

	for _, annotations := range []map[string]string{reader.Annotations, reader.Spec.Template.Annotations} {
		for name := range annotations {
			if strings.HasPrefix(name, "ambit.dev/") {
				t.Errorf("the annotation %s stays", name)
			}
		}
	}

	w.steadily("it began anew once", func() error { return w.checkRestarts(reader, 2) })
}

func TestDeletedScopeRestartsReadersOfAListThatStays(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	one, two := w.scope(ops, "one", members(a)), w.scope(ops, "two", members(b))
	w.ready(one)
	w.ready(two)
	w.lists(ops, defaultList, ops, a, b)

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)

	w.delete(one)

	w.gone(one)
	w.lists(ops, defaultList, ops, b)
	w.restarted(reader, 1)
}

func TestDeletedScopeEvictsPodsOfOLMOnce(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", spec{})
	w.ready(nss)

	// A reader that has just restarted has to wait for its next turn, and the scope stays until then.
	waiting := deployment(ops, "waiting", readsList)
	w.run(waiting)
	w.running(ops, 1)
	w.setMembers(nss, member)
	w.restarted(waiting, 1)

	d := deployment(ops, "op", readsList)
	ownedByCSV(d)
	w.run(d)

	first := w.onePod(ops, "op")

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
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(ops, "op")
	nss := w.scope(ops, "scope", members(a, b))
	w.ready(nss)
	w.may(ops, "op", b, "get secrets")

	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 2)

	w.setMembers(nss, a)

	w.lists(ops, defaultList, ops, a)
	w.mayNot(ops, "op", b, "get secrets")
	w.restarted(reader, 1)
	w.event(ops, "NamespaceRemoved", b)
	w.may(ops, "op", a, "get secrets")
	w.ready(nss)
	w.equal("status.validatedMembers", nss.Status.ValidatedMembers, []string{a, ops})

	if roles, bindings := w.projections(b); len(roles)+len(bindings) > 0 {
		t.Errorf("left in %s: %v %v", b, roles, bindings)
	}
}

func TestScopeWhoseMembersAreGoneCanBeDeleted(t *testing.T) {
	w := begin(t)
	ops, gone, ending := w.namespace("home"), w.namespace("gone"), w.namespace("ending")
	w.operator(ops, "op")
	nss := w.scope(ops, "scope", members(gone, ending))
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
	w.gone(configMap(ops, defaultList))
}

func TestDeletedOperatorNamespaceTakesItsProjectionsAlong(t *testing.T) {
	w := begin(t)
	w.needs(outlivesOperatorNamespaces, "its rights in the home go with the home")

	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	w.run(deployment(ops, "reader", readsList))
	w.ready(w.scope(ops, "one", members(member)))
	w.ready(w.scope(ops, "two", members(member)))
	w.may(ops, "op", member, "get secrets")

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ops}}
	w.delete(ns)

	w.gone(ns)
	w.eventually("nothing is left", func() error {
		roles, bindings := w.projections(member)
		if len(roles)+len(bindings) > 0 {
			return fmt.Errorf("left in %s: %d roles, %d bindings", member, len(roles), len(bindings))
		}

		return nil
	})
	w.mayNot(ops, "op", member, "get secrets")
}

func TestScopeWithARefusedMemberCanBeDeleted(t *testing.T) {
	w := begin(t)
	ops, refused := w.namespace("home"), w.namespace("refused", refusesRoles)
	w.operator(ops, "op")
	w.grant(ops, "op", "refused-role", "get pods")
	w.untilRefusing(refused)

	nss := w.scope(ops, "scope", members(refused))
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
	w.may(ops, "op", refused, "get secrets")

	w.delete(nss)
	w.gone(nss)
	w.mayNot(ops, "op", refused, "get secrets")
}

func TestProjectionsWithoutAScopeAreRemoved(t *testing.T) {
	w := begin(t)
	w.needs(writesByItself, "with the scope goes the name of the account that may remove them")

	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	nss := w.scope(ops, "scope", members(member))
	w.ready(nss)
	w.may(ops, "op", member, "get secrets")

	// Somebody in a hurry takes the finalizer off.
	w.delete(nss)

	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
	if err := w.client.Patch(t.Context(), nss, free); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}

	w.gone(nss)
	w.mayNot(ops, "op", member, "get secrets")
	w.gone(configMap(ops, defaultList))
}
