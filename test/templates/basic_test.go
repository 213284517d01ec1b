package templates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

func TestInstanceBindsInItsNamespaces(t *testing.T) {
	w := begin(t)
	ops, a, b, other := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b"), w.Namespace("other")
	w.Make(testbed.Account(ops, "op"))

	template := w.template("t",
		entry("reader-", []string{"get secrets"}, ops+"/op"),
		entry("writer-", []string{"create pods"}, ops+"/op"))
	w.says(template, yes, "TemplatingSuccessful")

	if got := w.clusterRoles("t"); len(got) != 0 {
		t.Errorf("ClusterRoles of a template to which nobody refers: %v", got)
	}

	in := w.instance("i", "t", a, b)
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", a, a, b, b)

	for _, ns := range []string{a, b} {
		w.May(ops, "op", ns, "get secrets")
		w.May(ops, "op", ns, "create pods")
	}

	if w.Allowed(ops, "op", other, "get secrets") || w.Allowed(ops, "op", "", "get secrets") {
		t.Error("it reaches further than its namespaces")
	}

	roles := w.makes("t", 2)
	if !strings.HasPrefix(roles[0], "reader-") || !strings.HasPrefix(roles[1], "writer-") || len(roles[0]) != len("reader-")+16 {
		t.Errorf("names %v", roles)
	}

	w.Eventually("the status names the ClusterRoles", func() error {
		if w.get(template); !slices.Equal(template.Status.ClusterRoles, roles) {
			return fmt.Errorf("it names %v, want %v", template.Status.ClusterRoles, roles)
		}

		return nil
	})
	w.says(template, yes, "TemplatingSuccessful")

	// Fewer namespaces, then none of the instance at all.
	w.Change(in, func() { in.Spec.Namespaces = []string{b} })
	w.binds("i", b, b)
	w.MayNot(ops, "op", a, "get secrets")
	w.Remove(in)
	w.binds("i")
	w.makes("t", 0)
	w.MayNot(ops, "op", b, "get secrets")
}

func TestInstanceBindsInTheWholeCluster(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))
	w.template("t", entry("reader-", []string{"get secrets", "get nodes"}, ops+"/op"))

	in := w.instance("i", "t")
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", "")
	w.May(ops, "op", "", "get nodes")
	w.May(ops, "op", a, "get secrets")

	// From everywhere to somewhere needs nobody's leave.
	w.Change(in, func() { in.Spec.Namespaces = []string{a} })
	w.binds("i", a)
	w.MayNot(ops, "op", "", "get nodes")
	w.May(ops, "op", a, "get secrets")
}

func TestTemplateChangesInPlace(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"), testbed.Account(ops, "second"))

	template := w.template("t",
		entry("reader-", []string{"get secrets"}, ops+"/op"),
		entry("gone-", []string{"get pods"}, ops+"/op"))
	w.instance("i", "t", a)
	w.binds("i", a, a)

	before := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.makes("t", 2)[1]}}
	w.Eventually("the role", func() error {
		return w.Client.Get(t.Context(), client.ObjectKeyFromObject(before), before)
	})

	w.Change(template, func() {
		template.Spec.ClusterRoles = template.Spec.ClusterRoles[:1]
		template.Spec.ClusterRoles[0] = entry("reader-", []string{"get secrets", "list configmaps"}, ops+"/op", ops+"/second")
	})
	w.May(ops, "second", a, "list configmaps")
	w.MayNot(ops, "op", a, "get pods")
	w.makes("t", 1)
	w.binds("i", a)

	after := &rbacv1.ClusterRole{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(before), after); err != nil || after.UID != before.UID {
		t.Errorf("the ClusterRole is another: %v", err)
	}

	if refs := after.OwnerReferences; len(refs) != 1 || refs[0].UID != template.UID {
		t.Errorf("owner references %v", refs)
	}
}

func TestInstanceBeforeItsTemplate(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	in := w.instance("i", "t", a)
	w.says(in, no, "ScopeTemplateNotFound", w.name("t"))

	template := w.template("t", entry("reader-", []string{"get secrets"}, ops+"/op"))
	w.says(in, yes, "ScopingSuccessful")
	w.May(ops, "op", a, "get secrets")

	w.Remove(template)
	w.says(in, no, "ScopeTemplateNotFound")
	w.binds("i")
	w.MayNot(ops, "op", a, "get secrets")

	w.template("t", entry("reader-", []string{"get pods"}, ops+"/op"))
	w.May(ops, "op", a, "get pods")
	w.says(in, yes, "ScopingSuccessful")
}

// TestNoCapture holds that a generateName never leads to a ClusterRole that Ambit did not make.
func TestNoCapture(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	w.template("t",
		entry("cluster-admin", []string{"get pods"}, ops+"/op"),
		entry("fine-", []string{"get services"}, ops+"/op"))
	in := w.instance("i", "t", a)
	w.says(in, yes, "ScopingSuccessful")

	role := w.makes("t", 2)[0]
	if w.Allowed(ops, "op", a, "delete secrets") || role == "cluster-admin" {
		t.Fatalf("it bound %s", role)
	}

	// Somebody else takes the name, with other rights, while it is free.
	w.Remove(in)
	w.makes("t", 0)

	foreign := testbed.ClusterRole(role, "delete secrets")
	w.Make(foreign)

	again := w.instance("again", "t", a)
	w.says(again, yes, "ScopingSuccessful")
	w.May(ops, "op", a, "get services")
	w.May(ops, "op", a, "get pods")
	w.binds("again", a, a)

	if w.Allowed(ops, "op", a, "delete secrets") || slices.Contains(w.makes("t", 2), role) {
		t.Error("a foreign ClusterRole was bound")
	}
}
