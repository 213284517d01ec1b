package namespacescope_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSourcesMayComeInAnyOrder(t *testing.T) {
	t.Parallel()

	for _, order := range []string{"dbrasn", "sbnrda"} {
		t.Run(order, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), names(1, "member")[0]

			steps := map[rune]func(){
				'n': func() { w.namespaceCalled(member) },
				's': func() { w.scope(ops, "scope", members(member)) },
				'a': func() { w.create(serviceAccount(ops, "op")) },
				'r': func() { w.create(role(ops, "reader", "get secrets")) },
				'b': func() { w.create(binding(ops, "readers", "Role", "reader", subject(ops, "op"))) },
				'd': func() { w.create(deployment(ops, "op")) },
			}
			for _, step := range order {
				steps[step]()
			}

			w.lists(ops, defaultList, ops, member)
			w.may(ops, "op", member, "get secrets")
		})
	}
}

func TestWhatGoesAtTheSourceGoesInEveryMember(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		remove func(w *world, ops string)
	}{
		"Binding": {"a binding that is deleted", func(w *world, ops string) { w.delete(binding(ops, "secrets", "", "")) }},
		"Account": {"an account that is deleted", func(w *world, ops string) { w.delete(serviceAccount(ops, "op")) }},
		"Rule": {"a rule that is taken out of a role", func(w *world, ops string) {
			r := role(ops, "secrets")
			w.change(r, func() { r.Rules = r.Rules[1:] })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
			w.operator(ops, "op")
			w.create(serviceAccount(ops, "another"))
			r := role(ops, "secrets")
			w.change(r, func() { r.Rules = append(r.Rules, rule("get pods")) })
			w.ready(w.scope(ops, "scope", members(a, b)))
			w.may(ops, "op", a, "get secrets")
			w.may(ops, "op", b, "get secrets")

			tc.remove(w, ops)

			for _, member := range []string{a, b} {
				w.mayNot(ops, "op", member, "get secrets")
			}

			// The list says where operators work, not what they may do.
			w.lists(ops, defaultList, ops, a, b)
		})
	}
}

func TestProjectedRBACIsNeverASource(t *testing.T) {
	w := begin(t)
	first, second, last := w.namespace("home"), w.namespace("home"), w.namespace("last")
	w.letIn(second)
	w.operator(first, "op")
	w.operator(second, "op")
	w.ready(w.scope(first, "scope", members(second)))
	w.may(first, "op", second, "get secrets")

	// The second namespace's operator is bound to the role that was projected there.
	copied := w.projectedRole(first, "secrets", second)
	w.create(binding(second, "borrowed", "Role", copied.Name, subject(second, "op")))

	nss := w.scope(second, "scope", members(last))

	w.ready(nss)
	w.may(second, "op", last, "get secrets")
	w.reports(nss, "RolesFound", metav1.ConditionFalse, "Missing")

	roles, bindings := w.projections(last)
	w.equal("copies", [2]int{len(roles), len(bindings)}, [2]int{1, 1})

	for _, obj := range append(pointers(roles), pointers(bindings)...) {
		if source := obj.GetAnnotations()["ambit.dev/source"]; !strings.HasSuffix(source, "/"+second+"/secrets") {
			t.Errorf("%s was projected from %s", obj.GetName(), source)
		}
	}

	w.mayNot(first, "op", last, "get secrets")
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	var out []client.Object

	for i := range items {
		out = append(out, P(&items[i]))
	}

	return out
}
