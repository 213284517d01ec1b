package namespacescope_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

var errNotThere = errors.New("not there yet")

// sees is why selectors cannot be followed everywhere.
const sees = "it may not list namespaces"

func TestMemberIsPickedUpWhenItExists(t *testing.T) {
	w := begin(t)
	ops, present, later := w.namespace("home"), w.namespace("present"), names(1, "later")[0]
	w.operator(ops, "op")

	nss := w.scope(ops, "scope", members(later, present))

	w.reports(nss, "Ready", metav1.ConditionFalse, w.absent("MembersFailed"))
	w.lists(ops, defaultList, ops, present)
	w.may(ops, "op", present, "get secrets")
	w.checkFailed(nss, later, w.absent("NamespaceNotFound"))

	w.namespaceCalled(later)

	w.ready(nss)
	w.lists(ops, defaultList, ops, later, present)
	w.may(ops, "op", later, "get secrets")
	w.equal("status.failedMembers", len(nss.Status.FailedMembers), 0)
}

func TestTerminatingMemberIsLeftOutUntilItExistsAgain(t *testing.T) {
	w := begin(t)
	ops, other, member := w.namespace("home"), w.namespace("other"), names(1, "member")[0]
	w.operator(ops, "op")

	// The namespace cannot end while it holds this.
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member}})

	hold := configMap(member, "hold")
	hold.Finalizers = []string{"namespacescope-test/hold"}
	w.create(hold)
	w.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member}})

	nss := w.scope(ops, "scope", members(member, other))

	w.reports(nss, "Ready", metav1.ConditionFalse, w.absent("MembersFailed"))
	// Ambit may hear of the scope before it hears of the namespace.
	w.eventually("the status", func() error { return w.failed(nss, member, w.absent("NamespaceTerminating")) })
	w.lists(ops, defaultList, ops, other)

	w.change(hold, func() { hold.Finalizers = nil })
	w.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: member}})
	w.namespaceCalled(member)

	w.ready(nss)
	w.lists(ops, defaultList, ops, member, other)
	w.may(ops, "op", member, "get secrets")
}

func TestDeletedMemberLeavesTheList(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	w.operator(ops, "op")
	nss := w.scope(ops, "scope", members(a, b))
	w.ready(nss)

	w.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a}})

	w.lists(ops, defaultList, ops, b)
	w.reports(nss, "Ready", metav1.ConditionFalse, w.absent("MembersFailed"))
	w.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a}})
	w.eventually("the status", func() error { return w.failed(nss, a, w.absent("NamespaceNotFound")) })
	w.may(ops, "op", b, "get secrets")
}

func TestSelectorFollowsLabels(t *testing.T) {
	w := begin(t)
	w.needs(readsEverything, sees)

	// Labels are the whole cluster's; this one is the test's own.
	label := "cool.io/prod-" + rand.String(6)
	ops, one := w.namespace("home"), w.namespace("one", label+"=true")
	two, wrong := w.namespace("two"), w.namespace("wrong", label+"=other")
	w.operator(ops, "op")

	nss := w.scope(ops, "scope", selecting(`{"`+label+`": "true"}`))
	w.lists(ops, defaultList, ops, one)
	w.reports(nss, "NamespacesSelected", metav1.ConditionTrue, "Selected")

	w.relabel(two, label, "true")
	w.lists(ops, defaultList, ops, one, two)
	w.may(ops, "op", two, "get secrets")

	w.relabel(one, label, "other")
	w.lists(ops, defaultList, ops, two)
	w.mayNot(ops, "op", one, "get secrets")

	born := w.namespace("born", label+"=true")
	w.lists(ops, defaultList, ops, two, born)
	w.may(ops, "op", born, "get secrets")

	if err := w.checkDenied(on(ops, "op", wrong, "get secrets")); err != nil {
		t.Error(err)
	}
}

func TestSelectorThatCannotBeFollowedSaysSo(t *testing.T) {
	w := begin(t)
	w.needs(seesNothing, "it may list namespaces")

	ops, member, labelled := w.namespace("home"), w.namespace("member"), w.namespace("labelled", "cool.io/prod=true")
	w.operator(ops, "op")

	s := selecting(`{"cool.io/prod": "true"}`)
	s.NamespaceMembers = []string{member}
	nss := w.scope(ops, "scope", s)

	w.reports(nss, "Ready", metav1.ConditionFalse, "InvalidSpec")
	w.lists(ops, defaultList, ops, member)
	w.may(ops, "op", member, "get secrets")

	c := w.reports(nss, "NamespacesSelected", metav1.ConditionFalse, "InvalidSelector")
	if !strings.Contains(c.Message, "may not list namespaces") || !strings.Contains(c.Message, "spec.namespaceMembers") {
		t.Errorf("the message says neither why nor what to do: %s", c.Message)
	}

	if err := w.checkDenied(on(ops, "op", labelled, "get secrets")); err != nil {
		t.Error(err)
	}

	w.change(nss, func() { nss.Spec.NamespaceSelector = nil })
	w.ready(nss)
}

func (w *world) relabel(namespace, key, value string) {
	w.Helper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	w.change(ns, func() { ns.Labels[key] = value })
}

// failed says whether a member is reported as failed for a reason.
func (w *world) failed(nss *operatorv1.NamespaceScope, namespace, reason string) error {
	if err := w.get(nss); err != nil {
		return err
	}

	for _, m := range nss.Status.FailedMembers {
		if m.Namespace == namespace && m.Reason == reason && m.Message != "" {
			return nil
		}
	}

	return fmt.Errorf("failedMembers are %+v, want %s with %s", nss.Status.FailedMembers, namespace, reason)
}

func (w *world) checkFailed(nss *operatorv1.NamespaceScope, namespace, reason string) {
	w.Helper()

	if err := w.failed(nss, namespace, reason); err != nil {
		w.Error(err)
	}
}
