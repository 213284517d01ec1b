package reconcile_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// delegated makes the operator and a delegate that holds in the members a and b what the operator has, and may list pods there.
func (w *world) delegated() {
	w.Helper()
	w.common()
	w.grant(ops, "more", "op", "list pods")
	w.Delegate(w.ns(ops), []string{"get secrets", "list pods"})

	for _, short := range []string{"a", "b"} {
		w.lets(short)
	}

	w.scope(`{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate"}`)
	w.settle()
	w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": twoRoles, "b": twoRoles}})
}

var twoRoles = with("Role more: list pods", "more: Role more to ops/op")

// lets has a namespace grant the delegate what it needs there, and waits until the API server goes by it.
func (w *world) lets(short string) {
	w.Helper()
	w.grant(short, "in-member", "delegate", append(testbed.InMember(), "get secrets", "list pods")...)
	w.May(w.ns(ops), "delegate", w.ns(short), "create roles")
}

// withdraws takes that back.
func (w *world) withdraws(short string) {
	w.Helper()
	w.Remove(testbed.Role(w.ns(short), "in-member"))
	w.Remove(w.binding(short, "in-member", "Role", "in-member"))
	w.MayNot(w.ns(ops), "delegate", w.ns(short), "create roles")
}

// removeCopies deletes the copies of a kind in the member a that mirror a source; of every source where none is named.
func (w *world) removeCopies(binding bool, source string) {
	w.Helper()

	removed := 0

	for _, obj := range w.copiesOf("a", &rbacv1.RoleList{}) {
		if !binding && (source == "" || sourceOf(obj) == source) {
			w.Remove(obj)

			removed++
		}
	}

	for _, obj := range w.copiesOf("a", &rbacv1.RoleBindingList{}) {
		if binding && (source == "" || sourceOf(obj) == source) {
			w.Remove(obj)

			removed++
		}
	}

	if removed == 0 {
		w.Fatal("nothing was removed")
	}
}

// TestMembersThatLoseTheirPermissions: a listed member leaves the list when what was projected there is known to be gone and
// cannot be put back, stays when a change is refused, and comes back by itself.
func TestMembersThatLoseTheirPermissions(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		change func(w *world)
		list   string
		copies []string
		// reason is that of the failed member.
		reason string
		// after are the copies once the rights are back.
		after []string
	}{
		"nothing is gone, and nothing is to be written": {
			change: func(*world) {}, list: "a,b,ops", copies: twoRoles, after: twoRoles,
		},
		"all bindings are gone": {
			change: func(w *world) { w.removeCopies(true, "") }, list: "b,ops", reason: "a AuthorizationRequired",
			copies: []string{"Role more: list pods", "Role op-role: get secrets"}, after: twoRoles,
		},
		"all Roles are gone": {
			change: func(w *world) { w.removeCopies(false, "") }, list: "b,ops", reason: "a AuthorizationRequired",
			after: twoRoles,
		},
		"one binding is gone": {
			change: func(w *world) { w.removeCopies(true, "more") }, list: "b,ops", reason: "a AuthorizationRequired",
			copies: []string{"Role more: list pods", "Role op-role: get secrets", "op-role: Role op-role to ops/op"}, after: twoRoles,
		},
		"everything is gone": {
			change: func(w *world) { w.removeCopies(true, ""); w.removeCopies(false, "") }, list: "b,ops",
			reason: "a AuthorizationRequired", copies: []string{}, after: twoRoles,
		},
		"a rule more is refused, and what was there is there": {
			change: func(w *world) {
				r := testbed.Role(w.ns(ops), "more")
				w.Change(r, func() { r.Rules = append(r.Rules, testbed.Rule("get secrets")) })
			},
			list: "a,b,ops", copies: twoRoles, reason: "a AuthorizationRequired",
			after: with("Role more: list pods; get secrets", "more: Role more to ops/op"),
		},
		"a Role more is refused, and what was there is there": {
			change: func(w *world) { w.grant(ops, "new", "op", "list pods") },
			list:   "a,b,ops", copies: twoRoles, reason: "a AuthorizationRequired",
			after: with("Role more: list pods", "Role new: list pods", "more: Role more to ops/op", "new: Role new to ops/op"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.delegated()
			w.withdraws("a")
			tc.change(w)
			w.settle()

			failed := []string{}
			if tc.reason != "" {
				failed = append(failed, tc.reason)
			}

			is(w, "watch list", w.list(), tc.list)
			is(w, "failed members", w.failed("scope"), failed)

			if tc.copies != nil {
				is(w, "copies", w.copies("a"), tc.copies)
			}

			if tc.reason != "" {
				is(w, "Ready", w.condition("scope", "Ready"), "False AuthorizationRequired")
				w.names("the failed member", w.called(w.status("scope").FailedMembers[0].Message), "to grant it: ambit authorize a --to ops")
			}

			w.lets("a")
			w.rest()
			w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": tc.after, "b": tc.after}})
		})
	}
}
