package reconcile_test

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// more makes a Role of the operator namespace, bound to accounts there.
func (w *world) more(accounts ...string) {
	w.Helper()

	b := w.binding(ops, "more", "Role", "more")
	for _, name := range accounts {
		b.Subjects = append(b.Subjects, w.binding(ops, "", "", "", testbed.Account(w.ns(ops), name)).Subjects...)
	}

	w.Make(testbed.Account(w.ns(ops), "other"), testbed.Role(w.ns(ops), "more", "list pods", "get configmaps"), b)
}

func (w *world) rebinds(edit func(*rbacv1.RoleBinding)) {
	w.Helper()

	b := w.binding(ops, "more", "Role", "more")
	w.Change(b, func() { edit(b) })
}

func (w *world) losesRule() {
	w.Helper()

	r := testbed.Role(w.ns(ops), "more")
	w.Change(r, func() { r.Rules = r.Rules[:1] })
}

func dropsLast(b *rbacv1.RoleBinding) { b.Subjects = b.Subjects[:len(b.Subjects)-1] }

const (
	moreRole = "Role more: list pods; get configmaps"
	toBoth   = "more: Role more to ops/op ops/other"
)

// TestExcessGoesWhereNothingMayBeChanged: what a source no longer gives goes from a member in which an admission policy, which
// lets Ambit delete and create, refuses to change the copy. A copy that gives nothing in excess stays.
func TestExcessGoesWhereNothingMayBeChanged(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		bound   []string
		change  func(w *world)
		refused string
		status  int
		want    []string
	}{
		"a rule of a Role": {
			bound: []string{"op", "other"}, change: (*world).losesRule, refused: "patch roles a/", status: http.StatusForbidden,
			want: with("Role more: list pods", toBoth),
		},
		"which is found invalid": {
			bound: []string{"op", "other"}, change: (*world).losesRule, refused: "patch roles a/", status: http.StatusUnprocessableEntity,
			want: with("Role more: list pods", toBoth),
		},
		"a subject of a binding": {
			bound: []string{"op", "other"}, change: func(w *world) { w.rebinds(dropsLast) }, refused: "patch rolebindings a/",
			status: http.StatusForbidden, want: with(moreRole, "more: Role more to ops/op"),
		},
		"a subject that is to come": {
			bound: []string{"op"}, change: func(w *world) {
				w.rebinds(func(b *rbacv1.RoleBinding) {
					b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns(ops), Name: "other"})
				})
			},
			refused: "patch rolebindings a/", status: http.StatusForbidden, want: with(moreRole, "more: Role more to ops/op"),
		},
		"a mark that somebody changed": {
			bound: []string{"op", "other"}, change: func(w *world) {
				for _, r := range w.copiesOf("a", &rbacv1.RoleList{}) {
					w.Change(r, func() { r.GetLabels()[scope.LabelManagedBy] = "somebody" })
				}
			},
			refused: "patch roles a/", status: http.StatusForbidden, want: with(moreRole, toBoth),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()
			w.more(tc.bound...)
			w.scope(`{"namespaceMembers":["a>"],"serviceAccountMembers":["other"]}`)
			w.settle()
			w.asks(tc.change)

			w.refuses = refusingAll(tc.refused, tc.status)
			w.settle()
			is(w, "copies", w.copies("a"), tc.want)
		})
	}
}

// TestSubjectGoesAlthoughTheRestMayNotBeBound: a delegate that no longer holds what a Role grants may bind it to nobody, and
// takes the binding away from who is to lose it.
func TestSubjectGoesAlthoughTheRestMayNotBeBound(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.more("op", "other")
	w.Delegate(w.ns(ops), []string{"get secrets", "list pods", "get configmaps"})
	w.grant("a", "in-member", "delegate", append(testbed.InMember(), "get secrets", "list pods", "get configmaps")...)
	w.May(w.ns(ops), "delegate", w.ns("a"), "create roles")
	w.scope(`{"namespaceMembers":["a>"],"serviceAccountMembers":["other"],"serviceAccountName":"delegate"}`)
	w.settle()
	is(w, "copies", w.copies("a"), with(moreRole, toBoth))

	r := testbed.Role(w.ns("a"), "in-member")
	w.Change(r, func() { r.Rules = r.Rules[:len(r.Rules)-1] })
	w.MayNot(w.ns(ops), "delegate", w.ns("a"), "get configmaps")
	w.rebinds(dropsLast)
	w.settle()
	is(w, "copies", w.copies("a"), with(moreRole))
	is(w, "failed members", w.failed("scope"), []string{"a AuthorizationRequired"})
}

// TestWhatMayNotBeDeletedIsEmptied: what an admission policy keeps from being deleted gives nobody anything, whoever is to lose
// it: a namespace that left, or what is left of a scope that is gone. The scope says that it is there still.
func TestWhatMayNotBeDeletedIsEmptied(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(w *world){
		"a namespace that left":  func(w *world) { w.respec(`{"namespaceMembers":["b>"]}`) },
		"a scope that goes":      func(w *world) { w.removeScope("scope") },
		"a binding that is gone": func(w *world) { w.Remove(w.binding(ops, "op-role", "Role", "op-role")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, `{"namespaceMembers":["a>","b>"]}`)
			w.refuses = refusingAll("delete role", http.StatusForbidden)
			change(w)

			_, wrote := w.settle()
			is(w, "copies", w.copies("a"), []string{"Role op-role: ", "op-role: Role op-role to "})
			w.at(wrote, "patch rolebindings a/")

			w.refuses = nil
			w.settle()
			is(w, "copies once they may be deleted", w.copies("a"), []string{})
		})
	}
}

// TestLeaverHoldsNothingNew: whoever leaves a template is not bound any more when its role gains rules, also where bindings may
// not be changed.
func TestLeaverHoldsNothingNew(t *testing.T) {
	w := templated(t)
	w.template(reader)
	w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>"]}`)
	w.reconcileTemplates()

	w.refuses = refusingAll("patch rolebindings a/", http.StatusForbidden)
	w.retemplate(strings.NewReplacer(`["get"]`, `["get","list"]`, `"name":"op"`, `"name":"other"`).Replace(reader))

	is(w, "what is written", kindsOf(w.reconcileTemplates()),
		[]string{"delete rolebindings", "patch clusterroles", "create rolebindings"})
	is(w, "bindings", w.bound("i"), []string{"a: ops/other"})
}
