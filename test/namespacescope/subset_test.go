package namespacescope_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSubsetIsProjectedWhereTheScopeAllowsIt(t *testing.T) {
	w := begin(t)
	ops, served := w.namespace("home"), w.namespace("served")
	refused := w.namespace("refused", refusesRoles)
	w.operator(ops, "op")
	w.grant(ops, "op", "refused-one", "get pods")
	w.grant(ops, "op", "refused-two", "get services")
	w.untilRefusing(refused)

	s := members(refused, served)
	s.AllowSubsetProjection = true
	nss := w.scope(ops, "scope", s)

	w.reports(nss, "Ready", metav1.ConditionTrue, "SubsetProjected")
	w.lists(ops, defaultList, ops, refused, served)
	w.equal("status.failedMembers", len(nss.Status.FailedMembers), 0)
	w.event(ops, "RoleNotProjected", refused)

	w.equal("status.unprojectedRoles is a line for each role", len(nss.Status.UnprojectedRoles), 2)

	for i, role := range []string{"refused-one", "refused-two"} {
		line := nss.Status.UnprojectedRoles[i]
		if !strings.HasPrefix(line, refused+"/"+role+": ") || !strings.Contains(line, "this house has a rule against it") {
			t.Errorf("want <member>/<source role>: reason, got %q", line)
		}
	}

	if !slices.IsSorted(nss.Status.UnprojectedRoles) {
		t.Errorf("status.unprojectedRoles is not sorted: %v", nss.Status.UnprojectedRoles)
	}

	w.may(ops, "op", refused, "get secrets")
	w.may(ops, "op", served, "get pods")
	w.mayNot(ops, "op", refused, "get pods")

	w.allowRoles(refused, nss)
	w.ready(nss)
	w.may(ops, "op", refused, "get pods")
}

func TestSubsetIsNoLongerAllowed(t *testing.T) {
	w := begin(t)
	ops, refused := w.namespace("home"), w.namespace("refused", refusesRoles)
	w.operator(ops, "op")
	w.grant(ops, "op", "refused-role", "get pods")
	w.untilRefusing(refused)

	nss := w.scope(ops, "scope", members(refused))
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
	w.lists(ops, defaultList, ops)

	w.change(nss, func() { nss.Spec.AllowSubsetProjection = true })
	w.reports(nss, "Ready", metav1.ConditionTrue, "SubsetProjected")
	w.lists(ops, defaultList, ops, refused)

	// Once listed, it stays.
	w.change(nss, func() { nss.Spec.AllowSubsetProjection = false })
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
	w.steadily("the member stays in the list", func() error { return w.checkList(ops, defaultList, ops, refused) })
}
