package overview_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhichNamespacesAreUnread: of the namespaces that a status names, those are unknown that may not be read and of which
// nothing else is known: not those of a scope that goes, or that is for the whole cluster, nor the one where its operators run.
func TestWhichNamespacesAreUnread(t *testing.T) {
	t.Parallel()

	deleted := serving("m")
	deleted.Deleted = time.Unix(1, 0)

	everywhere := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeInstance", Name: "s"}, Key: scope.TemplatesKey(), Members: scope.Members{Everywhere: true},
		Binds: []scope.Binding{{Role: "r", Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}}}},
	}

	for reason, tc := range map[string]struct {
		scope    scope.Scope
		reported string
		failed   string
		closed   string
		hidden   string
		want     string
	}{
		"nothing is out of sight":                {serving("m"), "m x", "y", "", "", ""},
		"its content may not be read":            {serving("m"), "x y", "", "x", "", "x"},
		"it may not be read itself":              {serving("m"), "x y", "", "", "y", "y"},
		"the status says that it failed":         {serving("m"), "", "x", "x", "", "x"},
		"the status says both":                   {serving("m"), "x", "x", "x", "x", "x"},
		"a member is hidden, but its content is": {serving("m"), "m", "", "", "m", ""},
		"the content of a member is closed":      {serving("m"), "", "", "m", "", "m"},
		"it is where its operators run":          {serving("m"), "ops", "", "ops", "ops", ""},
		"the scope is being deleted":             {deleted, "x", "", "x", "x", ""},
		"the scope is for the whole cluster":     {everywhere, "x", "y", "x y", "", ""},
	} {
		tc.scope.Reported, tc.scope.Failed = strings.Fields(tc.reported), strings.Fields(tc.failed)
		f := operatorNamespace(nil)
		f.Key = tc.scope.Key
		p := plan.New([]scope.Scope{tc.scope}, f)

		k := known(f, nothing)
		k.Closed = func(namespace string) bool { return slices.Contains(strings.Fields(tc.closed), namespace) }
		k.Hidden = func(namespace string) bool { return slices.Contains(strings.Fields(tc.hidden), namespace) }

		if got := strings.Join(k.Unread(&p.Scopes[0]), " "); got != tc.want {
			t.Errorf("%s: not read are %q, want %q", reason, got, tc.want)
		}
	}
}

// TestWhoHasNoMembersToShow: only a scope that mirrors, and that stays, has members while it has no account.
func TestWhoHasNoMembersToShow(t *testing.T) {
	t.Parallel()

	deleted := serving("m")
	deleted.Deleted = time.Unix(1, 0)

	explicit := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeInstance", Name: "s"}, Key: scope.TemplatesKey(), Members: scope.Members{Named: []string{"m"}},
	}

	for reason, tc := range map[string]struct {
		scope  scope.Scope
		closed bool
		want   []string
	}{
		"it mirrors":              {serving("m"), false, []string{"ops", "m"}},
		"it is being deleted":     {deleted, false, nil},
		"it says itself to bind":  {explicit, false, nil},
		"whether is not known":    {serving("m"), true, nil},
		"it goes, and is unknown": {deleted, true, nil},
	} {
		f := operatorNamespace(nil)
		f.Key, f.OperatorNamespace.Accounts = tc.scope.Key, nil
		p := plan.New([]scope.Scope{tc.scope}, f)
		k := known(f, nothing)
		k.OperatorNamespaceClosed = tc.closed

		var got []string
		for _, m := range k.Empty(&p.Scopes[0]) {
			got = append(got, m.Namespace)
		}

		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: members %q, want %q", reason, got, tc.want)
		}

		// Somebody may work for a scope of which nothing is known, but nobody will for one that goes.
		services := overview.OfScope(&p.Scopes[0], "S", k)
		if some := len(services) > 0; some != (tc.closed && !tc.scope.Deleting()) {
			t.Errorf("%s: somebody works for it: %+v", reason, services)
		}

		for i := range services {
			if s := &services[i]; s.Scope != "S" || s.Operator.Name != overview.AnyAccount {
				t.Errorf("%s: who is known is %+v", reason, s)
			}
		}
	}
}

// TestClusterRolesOfATemplate: a ClusterRole that a scope defines is shown under the name that it has in the cluster, which
// differs from that of its first version.
func TestClusterRolesOfATemplate(t *testing.T) {
	t.Parallel()

	template := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeTemplate", Name: "t"}, Key: scope.TemplatesKey(), Members: scope.Members{Everywhere: true},
		Defines: []scope.ClusterRole{{Name: "r", Rules: ruleOn("pods")}},
	}
	instance := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeInstance", Name: "i"}, Key: scope.TemplatesKey(), Members: scope.Members{Named: []string{"m"}},
		Binds: []scope.Binding{{Role: "r", Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}}}},
	}
	f := &facts.Facts{Key: scope.TemplatesKey(), Namespaces: map[string]facts.Namespace{"m": {}}}
	p := plan.New([]scope.Scope{instance, template}, f)
	s := &p.Scopes[slices.IndexFunc(p.Scopes, func(s plan.ScopePlan) bool { return s.Scope.Owner.Kind == "ScopeInstance" })]

	const made = "r-2"

	s.ClusterRoles = map[string]string{"r": made} // As after a change by which it gained rules.

	k := known(f, nothing)
	k.Rules = func(name string) []rbacv1.PolicyRule {
		return map[string][]rbacv1.PolicyRule{made: ruleOn("pods")}[name]
	}

	services := overview.OfScope(s, "S", k)
	if len(services) != 1 || len(services[0].Roles) != 1 {
		t.Fatalf("services are %+v", services)
	}

	if r := services[0].Roles[0]; r.Name != "ClusterRole "+made || r.Binding != "" || len(r.Rules) != 1 ||
		services[0].Operator.String() != "User jane" {
		t.Errorf("%s has %+v, want the ClusterRole %s", services[0].Operator, r, made)
	}
}
