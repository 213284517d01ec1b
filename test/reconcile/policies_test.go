package reconcile_test

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// shared begins a case in which two accounts hold what the operator has.
func shared(t *testing.T) (w *world, binding *rbacv1.RoleBinding) {
	t.Helper()

	w = begin(t)
	w.common()
	w.operator("second")

	binding = w.binding(ops, "op-role", "Role", "op-role")
	w.Change(binding, func() {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: w.ns(ops), Name: "second",
		})
	})

	return w, binding
}

// TestSubjectGoesWhoeverMayNotBind: an account that its source no longer binds keeps nothing in a member because the delegate may
// not bind the others there any more.
func TestSubjectGoesWhoeverMayNotBind(t *testing.T) {
	t.Parallel()

	w, binding := shared(t)
	w.Delegate(w.ns(ops), []string{"get secrets"})
	w.grant("a", "in-member", "delegate", append(testbed.InMember(), "get secrets")...)
	w.May(w.ns(ops), "delegate", w.ns("a"), "patch rolebindings")

	w.scope(`{"namespaceMembers":["a>"],"serviceAccountName":"delegate"}`)
	w.settle()
	is(w, "copies", w.copies("a"), []string{"Role op-role: get secrets", "op-role: Role op-role to ops/op ops/second"})

	granted := testbed.Role(w.ns("a"), "in-member")
	w.Change(granted, func() { granted.Rules = testbed.Role("", "", testbed.InMember()...).Rules })
	w.MayNot(w.ns(ops), "delegate", w.ns("a"), "get secrets")

	w.settle()
	is(w, "copies while nothing goes", w.copies("a"),
		[]string{"Role op-role: get secrets", "op-role: Role op-role to ops/op ops/second"})

	w.Change(binding, func() { binding.Subjects = binding.Subjects[:1] })
	w.settle()
	is(w, "copies once somebody goes", w.copies("a"), []string{"Role op-role: get secrets"})
	is(w, "Ready", w.condition("scope", "Ready"), "False AuthorizationRequired")
}

// TestRightsGoWherePoliciesTakeNoChange: an admission policy that lets nobody change permissions in a member, and lets them be
// deleted, keeps no rule and no subject there that is no longer wanted.
func TestRightsGoWherePoliciesTakeNoChange(t *testing.T) {
	t.Parallel()

	w, binding := shared(t)
	source := testbed.Role(w.ns(ops), "op-role")
	w.Change(source, func() { source.Rules = append(source.Rules, testbed.Rule("list pods")) })

	w.scope(`{"namespaceMembers":["a>"]}`)
	w.settle()

	all := []string{"Role op-role: get secrets; list pods", "op-role: Role op-role to ops/op ops/second"}
	is(w, "copies", w.copies("a"), all)

	w.refuses = func(what string) int {
		if strings.HasPrefix(what, "patch roles a/") || strings.HasPrefix(what, "patch rolebindings a/") {
			return http.StatusForbidden
		}

		return 0
	}

	w.Change(source, func() { source.Rules = source.Rules[1:] })
	w.Change(binding, func() { binding.Subjects = binding.Subjects[:1] })
	w.settle()

	is(w, "copies after", w.copies("a"), []string{"Role op-role: list pods", "op-role: Role op-role to ops/op"})
	is(w, "Ready", w.condition("scope", "Ready"), reconciled)
}
