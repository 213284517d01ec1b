package installs_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestPeopleAreBoundBeforeTheFirstOperator: the ClusterRoles of a group are there as soon as the group is, also of groups of one
// name in different namespaces, and of names of 240 characters that differ in the last. Who is bound to one then may use what the
// first operator brings, where they are bound, and nobody else may.
func TestPeopleAreBoundBeforeTheFirstOperator(t *testing.T) {
	w := begin(t, "cluster")
	long := strings.Repeat("long-name.", 24)[:239]
	names := map[string]string{
		w.Namespace("one"): "same", w.Namespace("two"): "same", w.Namespace("three"): long + "a", w.Namespace("four"): long + "b",
	}
	edits := map[string]string{}

	for own, name := range names {
		g := &operatorsv1.OperatorGroup{Spec: targets(own)}
		g.Namespace, g.Name = own, name
		w.Make(g)
	}

	w.Eventually("each group has three roles of its own", func() error {
		var roles rbacv1.ClusterRoleList
		if err := w.Client.List(t.Context(), &roles); err != nil {
			return err
		}

		found := 0

		for i := range roles.Items {
			role := &roles.Items[i]
			_, owner, _ := strings.Cut(role.Annotations["ambit.dev/owner"], "/")
			own, name, _ := strings.Cut(owner, "/")

			if name == "" || names[own] != name || len(role.Rules) > 0 || !strings.HasPrefix(role.Name, "olm.og."+name[:4]) {
				continue
			}

			if found++; strings.Contains(role.Name, ".edit-") {
				edits[own] = role.Name
			}
		}

		if found != 3*len(names) || len(edits) != len(names) {
			return fmt.Errorf("there are %d, and to edit with %v", found, edits)
		}

		return nil
	})

	crd := w.definition("firsts", "First")
	_, group, _ := strings.Cut(crd, ".")

	var first string

	for own := range names {
		w.Make(testbed.Bind(own, "ClusterRole", edits[own], own, "person"))

		if names[own] == long+"a" {
			first = own
		}
	}

	op := csv(first, "op.v1", owning(crd, "First"))
	w.Make(op)
	w.succeeds(op)
	w.Eventually("who was bound before may use the API", func() error {
		if !w.AllowedIn(first, "person", first, "create", group, "firsts") {
			return errNot
		}

		return nil
	})

	for own := range names {
		if own != first && w.AllowedIn(own, "person", own, "create", group, "firsts") {
			t.Errorf("who is bound to the role of another group may use the API in %s", own)
		}
	}
}
