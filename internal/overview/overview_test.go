package overview_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func service(operator, namespace, scope string, state overview.State) overview.Service {
	return overview.Service{
		Operator:  overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: operator},
		Namespace: namespace, Scope: scope, State: state, Roles: []overview.Role{{Name: "Role ops/r"}},
	}
}

// TestFoldingLosesNothing holds that every namespace is in just one column, and shows there what it shows by itself.
func TestFoldingLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		states := []overview.State{
			overview.OwnNamespace, overview.Served, overview.Idle, overview.Partial, overview.Failed, overview.Unknown,
		}

		var services []overview.Service

		for i := range rapid.IntRange(0, 40).Draw(t, "services") {
			services = append(services, service(
				fmt.Sprint("op-", rapid.IntRange(0, 5).Draw(t, "operator")),
				rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "ns"), fmt.Sprint("s-", i),
				rapid.SampledFrom(states).Draw(t, "state")))
		}

		m := overview.New(nil, services, []string{"a", "b", "z"}).Matrix()
		columns := m.Columns(true)

		var found []string

		for _, c := range columns {
			for _, name := range c.Namespaces {
				found = append(found, name)

				for i, o := range m.Operators {
					cell, state := m.At(o, name), overview.State("")
					if cell != nil {
						state = cell.State
					}

					if c.States[i] != state {
						t.Fatalf("%s in %q is %q, and %q by itself", o, name, c.States[i], state)
					}
				}
			}
		}

		slices.Sort(found)

		if !slices.Equal(found, slices.Sorted(slices.Values(m.Namespaces))) {
			t.Fatalf("columns hold %v of %v", found, m.Namespaces)
		}

		operators := 0
		for _, r := range m.Rows(columns, true) {
			operators += len(r.Operators)
		}

		if operators != len(m.Operators) || !slices.Contains(m.Unserved, "z") {
			t.Fatalf("rows hold %d operators of %d; unserved %v", operators, len(m.Operators), m.Unserved)
		}
	})
}

func TestTwoScopesInOneCell(t *testing.T) {
	t.Parallel()

	m := overview.New(nil, []overview.Service{
		service("op", "a", "one", overview.Failed), service("op", "a", "two", overview.Served),
	}, nil).Matrix()

	if len(m.Cells) != 1 || m.Cells[0].State != overview.Served || len(m.Cells[0].Services) != 2 {
		t.Errorf("what one scope gives is there: %+v", m.Cells)
	}
}

func TestTreesFold(t *testing.T) {
	t.Parallel()

	services := []overview.Service{service("op", "ops", "S", overview.OwnNamespace)}
	for i := range 200 {
		services = append(services, service("op", fmt.Sprintf("m-%03d", i), "S", overview.Served))
	}

	services[7].State, services[7].Reason = overview.Failed, "AuthorizationRequired"
	trees := overview.New([]overview.Scope{
		{Name: "S", Failed: []overview.FailedNamespace{{Namespace: "gone", Reason: "NamespaceNotFound"}}},
	}, services, nil).Trees()
	groups := trees[0].Groups(true)

	var sizes []int
	for _, g := range groups {
		sizes = append(sizes, len(g.Namespaces))
	}

	// The operator namespace, what is gone, what is served, and what is not.
	if len(trees[0].Members) != 202 || !slices.Equal(sizes, []int{1, 1, 199, 1}) {
		t.Errorf("%d members in groups of %v", len(trees[0].Members), sizes)
	}
}

func TestServicesOfAPlan(t *testing.T) {
	t.Parallel()

	rule := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
	f := &facts.Facts{
		Key: scope.NamespaceScopes.In("ops"), Namespaces: map[string]facts.Namespace{"ops": {}, "m": {}},
		OperatorNamespace: facts.OperatorNamespace{
			Accounts: map[string]struct{}{"op": {}, "idle": {}}, Roles: map[string][]rbacv1.PolicyRule{"r": rule},
			Bindings: map[string]facts.Binding{"b": {
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}},
			}},
		},
	}
	p := plan.New([]scope.Scope{{
		Owner: scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s"}, Key: scope.NamespaceScopes.In("ops"),
		Members: scope.Members{Named: []string{"gone", "m"}}, Accounts: scope.Accounts{All: true},
	}}, f)
	got := overview.OfScope(&p.Scopes[0], "S", known(f, func(namespace string) overview.Reason {
		return overview.Reason{Reason: "because of " + namespace}
	}))

	want := map[string]overview.State{
		"op m": overview.Failed, "op ops": overview.OwnNamespace, "op gone": overview.Failed,
		"idle m": overview.Idle, "idle ops": overview.OwnNamespace, "idle gone": overview.Failed,
	}

	for i := range got {
		s := &got[i]
		if key := s.Operator.Name + " " + s.Namespace; want[key] != s.State {
			t.Errorf("%s is %s, want %s", key, s.State, want[key])
		}

		if s.State == overview.Failed && s.Reason != "because of "+s.Namespace {
			t.Errorf("%+v has no reason", s)
		}

		if s.Operator.Name == "op" && (len(s.Roles) != 1 || s.Roles[0].Name != "Role ops/r" ||
			s.Roles[0].Missing != (s.State == overview.Failed)) {
			t.Errorf("roles of %+v", s)
		}
	}

	if len(got) != len(want) {
		t.Errorf("got %d services: %+v", len(got), got)
	}
}

// TestScopeWithoutAccountsHasMembers: its members are listed all the same, as are those of which the status says what is wrong.
func TestScopeWithoutAccountsHasMembers(t *testing.T) {
	t.Parallel()

	f := &facts.Facts{
		Key: scope.NamespaceScopes.In("ops"), Namespaces: map[string]facts.Namespace{"ops": {}, "held": {}, "m": {}, "n": {}},
	}
	s := scope.Scope{
		Owner: scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s"}, Key: scope.NamespaceScopes.In("ops"),
		Members: scope.Members{Named: []string{"gone", "held", "m", "n"}}, Accounts: scope.Accounts{All: true},
	}
	p := plan.New([]scope.Scope{s}, f)
	k := known(f, func(namespace string) overview.Reason {
		return map[string]overview.Reason{"held": {Reason: "HeldBack"}}[namespace]
	})
	all := overview.New([]overview.Scope{{
		Name: "S", Empty: k.Empty(&p.Scopes[0]),
		Failed: []overview.FailedNamespace{{Namespace: "gone", Reason: "NamespaceNotFound"}, {Namespace: "held", Reason: "HeldBack"}},
	}}, overview.OfScope(&p.Scopes[0], "S", k), nil)

	states := func(o *overview.Overview) (out []string) {
		for _, m := range o.Trees()[0].Members {
			out = append(out, m.Namespace+" "+string(m.State))
		}

		return out
	}

	if got, want := states(all), []string{"ops own", "gone failed", "held failed", "m idle", "n idle"}; !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}

	failed := all.Keep(overview.Filter{OnlyFailed: true})
	if got, want := states(failed), []string{"gone failed", "held failed"}; !slices.Equal(got, want) {
		t.Errorf("what failed: %v, want %v", got, want)
	}

	f.OperatorNamespace.Accounts = map[string]struct{}{"op": {}}
	if p := plan.New([]scope.Scope{s}, f); len(k.Empty(&p.Scopes[0])) != 0 {
		t.Errorf("with an account: %+v", k.Empty(&p.Scopes[0]))
	}
}

// TestNoRolesAreAList: to programs, an account without roles looks like any other.
func TestNoRolesAreAList(t *testing.T) {
	t.Parallel()

	idle := service("op", "m", "S", overview.Idle)
	idle.Roles = nil
	all := overview.New([]overview.Scope{{Name: "S"}}, []overview.Service{idle}, nil)

	for what, data := range map[string]any{"matrix": all.Matrix(), "tree": all.Trees()} {
		text, err := json.Marshal(data)
		if err != nil || !strings.Contains(string(text), `"roles":[]`) {
			t.Errorf("%s: %v: %s", what, err, text)
		}
	}
}
