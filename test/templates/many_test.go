package templates_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestSeveralInstancesOfOneTemplate: they share the ClusterRoles, which stay until the last of them is gone.
func TestSeveralInstancesOfOneTemplate(t *testing.T) {
	w := begin(t)
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))

	first, second, wide := w.instance("first", "t", a, b), w.instance("second", "t", b), w.instance("wide", "t")
	w.binds("first", a, b)
	w.binds("second", b)
	w.binds("wide", "")
	roles := w.makes("t", 1)

	w.Remove(wide)
	w.binds("wide")
	w.MayNot(ops, "op", ops, "get secrets")

	// Both bind in b, each on its own.
	w.Remove(first)
	w.binds("first")
	w.MayNot(ops, "op", a, "get secrets")
	w.May(ops, "op", b, "get secrets")

	if got := w.clusterRoles("t"); !slices.Equal(got, roles) {
		t.Errorf("ClusterRoles %v, before %v", got, roles)
	}

	w.Remove(second)
	w.makes("t", 0)
	w.MayNot(ops, "op", b, "get secrets")
}

func TestInstanceMovesToAnotherTemplate(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("from", entry("reader-", []string{"get secrets"}, ops+"/op"))
	w.template("to", entry("reader-", []string{"get pods"}, ops+"/op"), entry("writer-", []string{"create pods"}, ops+"/op"))

	in := w.instance("i", "from", a)
	w.binds("i", a)
	w.makes("to", 0)

	w.Change(in, func() { in.Spec.ScopeTemplateName = w.name("to") })
	w.binds("i", a, a)
	w.makes("from", 0)
	w.makes("to", 2)
	w.May(ops, "op", a, "create pods")
	w.MayNot(ops, "op", a, "get secrets")

	w.Change(in, func() { in.Spec.ScopeTemplateName = w.name("nowhere") })
	w.says(in, no, "ScopeTemplateNotFound")
	w.binds("i")
	w.makes("to", 0)

	w.Change(in, func() { in.Spec.ScopeTemplateName = w.name("from") })
	w.says(in, yes, "ScopingSuccessful")
	w.May(ops, "op", a, "get secrets")
}

// TestEqualTemplatesShareNothing: nor do equal entries within one.
func TestEqualTemplatesShareNothing(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	same := entry("reader-", []string{"get secrets"}, ops+"/op")
	w.template("one", same, same)
	w.template("two", same)
	one, two := w.instance("one", "one", a), w.instance("two", "two", a)
	w.binds("one", a, a)
	w.binds("two", a)

	all := slices.Concat(w.makes("one", 2), w.makes("two", 1))
	if slices.Sort(all); len(slices.Compact(all)) != 3 {
		t.Errorf("ClusterRoles %v", all)
	}

	w.Remove(one)
	w.makes("one", 0)
	w.binds("one")
	w.May(ops, "op", a, "get secrets")
	w.Remove(two)
	w.MayNot(ops, "op", a, "get secrets")
}

func TestTemplateDeletedAndMadeAgain(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	in := w.instance("i", "t", a)

	for range 3 {
		template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
		w.May(ops, "op", a, "get secrets")
		w.says(in, yes, "ScopingSuccessful")
		w.Remove(template)
		w.gone(template)
	}

	// As fast as a script does it.
	for range 3 {
		template := w.template("t", entry("reader-", []string{"get pods"}, ops+"/op"))
		w.Remove(template)
	}

	template := w.template("t", entry("reader-", []string{"get services"}, ops+"/op"))
	w.May(ops, "op", a, "get services")
	w.MayNot(ops, "op", a, "get secrets")
	w.MayNot(ops, "op", a, "get pods")
	w.binds("i", a)

	w.Eventually("the new template owns the ClusterRole", func() error {
		return w.ownedBy(&rbacv1.ClusterRoleList{}, owner{"ScopeTemplate", string(template.UID)})
	})
}

// TestEntriesComeAndGo: an entry that goes loses its bindings and its ClusterRole, and the others keep theirs.
func TestEntriesComeAndGo(t *testing.T) {
	w := begin(t)
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Make(testbed.Account(ops, "op"))

	entries := map[string]operatorsv1alpha1.ClusterRoleTemplate{
		"pods":     entry("pods-", []string{"get pods"}, ops+"/op"),
		"secrets":  entry("secrets-", []string{"get secrets"}, ops+"/op"),
		"services": entry("services-", []string{"get services"}, ops+"/op"),
		"nobody":   entry("nobody-", []string{"get nodes"}),
	}
	template := w.template("t", entries["pods"], entries["nobody"])
	in := w.instance("i", "t", a, b)
	w.binds("i", a, b)
	w.makes("t", 2)

	for _, now := range [][]string{{"secrets", "pods"}, {"pods", "services", "secrets"}, {"services"}, {}, {"pods"}} {
		w.Change(template, func() {
			template.Spec.ClusterRoles = nil
			for _, name := range now {
				template.Spec.ClusterRoles = append(template.Spec.ClusterRoles, entries[name])
			}
		})
		w.makes("t", len(now))
		w.binds("i", slices.Concat(slices.Repeat([]string{a}, len(now)), slices.Repeat([]string{b}, len(now)))...)
		w.says(in, yes, "ScopingSuccessful")

		for _, what := range []string{"pods", "secrets", "services"} {
			for _, ns := range []string{a, b} {
				if slices.Contains(now, what) {
					w.May(ops, "op", ns, "get "+what)
				} else {
					w.MayNot(ops, "op", ns, "get "+what)
				}
			}
		}
	}
}
