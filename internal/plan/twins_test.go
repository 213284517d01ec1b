package plan_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestScopesOfOneName: a scope of each group may have the same name, and so the same annotation on its copies. Each keeps
// its own.
func TestScopesOfOneName(t *testing.T) {
	t.Parallel()

	f := cluster()
	namespaces(f, "shared", "only")

	for _, account := range []string{"one", "two"} {
		f.OperatorNamespace.Accounts[account] = struct{}{}
		f.OperatorNamespace.Roles[account] = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get"}}}
		f.OperatorNamespace.Bindings[account] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: account}},
		}
	}

	older, now := newScope("s", "shared"), newScope("s", "only", "shared")
	older.Owner.Group = "namespacescope.ibm.com"
	older.Accounts, now.Accounts = scope.Accounts{Named: []string{"one"}}, scope.Accounts{Named: []string{"two"}}
	scopes := []scope.Scope{older, now}

	p := plan.New(scopes, f)
	carryOut(f, &p)

	if got := len(f.Projected["only"]); got != 2 {
		t.Fatalf("%d copies in the namespace of one of them", got)
	}

	if p := plan.New(scopes, f); len(p.Scopes[0].Revoke)+len(p.Scopes[0].Prune)+len(p.Scopes[1].Revoke)+len(p.Scopes[1].Prune) > 0 {
		t.Errorf("one takes away what is the other's:\n%s", &p)
	}

	scopes[0].Deleted, scopes[0].Members = f.Now, scope.Members{}
	p = plan.New(scopes, f)
	carryOut(f, &p)

	if only, shared := len(f.Projected["only"]), len(f.Projected["shared"]); only != 2 || shared != 2 {
		t.Errorf("after the older one: %d and %d copies, want 2 each", only, shared)
	}
}
