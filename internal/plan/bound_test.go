package plan_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhatScopesAskForIsBounded: all scopes of an operator namespace together have so many objects in members, the first by name.
func TestWhatScopesAskForIsBounded(t *testing.T) {
	t.Parallel()

	const roles = 100

	f := cluster()
	f.OperatorNamespace.Accounts["op"] = struct{}{}

	for i := range roles {
		name := fmt.Sprintf("role-%d", i)
		f.OperatorNamespace.Roles[name] = []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"},
		}}
		f.OperatorNamespace.Bindings[name] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
		}
	}

	var members []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf("m%04d", i))
	}

	namespaces(f, members...)

	scopes := []scope.Scope{newScope("second", members...), newScope("first", members...)}
	for i := range scopes {
		scopes[i].Accounts = scope.Accounts{Named: []string{"op"}}
	}

	p := plan.New(scopes, f)
	total := 0

	for i := range p.Scopes {
		s := &p.Scopes[i]
		total += len(s.Grant)

		if !slices.Equal(slices.Concat(s.Members, s.Beyond), members) {
			t.Errorf("scope %s has %d members, and %d beyond", s.Scope.Owner.Name, len(s.Members), len(s.Beyond))
		}
	}

	if total > plan.MaxObjects || total <= plan.MaxObjects-2*roles {
		t.Errorf("%d objects are planned, want as many as fit into %d", total, plan.MaxObjects)
	}

	if first := p.Scopes[0]; first.Scope.Owner.Name != "first" || len(first.Beyond) > 0 {
		t.Errorf("of the first scope, %d members are left out", len(first.Beyond))
	}

	if again := plan.New([]scope.Scope{scopes[0]}, f); len(again.Scopes[0].Beyond) > 0 {
		t.Errorf("alone, %d members are left out of it", len(again.Scopes[0].Beyond))
	}
}
