package overview_test

import (
	"maps"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// known is what somebody knows who may read everything that is not closed.
func known(f *facts.Facts, why func(string) overview.Reason) *overview.Known {
	return &overview.Known{
		OperatorNamespace: f.Key.Namespace, Why: why,
		Closed: func(namespace string) bool { return f.Namespaces[namespace].Closed != "" },
		Hidden: func(string) bool { return false },
	}
}

// TestWhatIsNotReadIsNeitherFailedNorAbsent holds that members of which nothing may be read are told by the scope's status, as
// far as that goes, and are called failed by nothing else.
func TestWhatIsNotReadIsNeitherFailedNorAbsent(t *testing.T) {
	t.Parallel()

	const closed = "you may not read it"

	failed := func(namespace string) overview.Reason {
		if namespace == "failed" {
			return overview.Reason{Reason: "AuthorizationRequired"}
		}

		return overview.Reason{}
	}
	s := scope.Scope{
		Owner: scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s"}, Key: scope.NamespaceScopes.In("ops"),
		Members: scope.Members{
			Named:    []string{"failed", "gone", "member", "new", "open"},
			Selector: labels.SelectorFromSet(labels.Set{"team": "a"}),
		},
		Accounts: scope.Accounts{All: true},
		Reported: []string{"hidden", "member", "open", "ops", "selected"}, Failed: []string{"failed"},
	}

	unknown := map[string]string{
		"failed": "AuthorizationRequired", "hidden": overview.NotRead, "member": overview.NotRead, "new": overview.NotRead,
		"selected": overview.NotRead,
	}

	for name, tc := range map[string]struct {
		operatorNamespaceClosed bool
		accounts                map[string]struct{}
		holders                 []string
		open                    overview.State
	}{
		"the operator namespace is read":     {false, map[string]struct{}{"op": {}}, []string{"op"}, overview.Failed},
		"the operator namespace is not read": {true, nil, []string{overview.AnyAccount}, overview.Unknown},
		"nor all that is in it":              {true, map[string]struct{}{"op": {}}, []string{"op"}, overview.Unknown},
		"there is nobody to tell":            {false, nil, nil, ""},
	} {
		f := &facts.Facts{
			Key: scope.NamespaceScopes.In("ops"),
			Namespaces: map[string]facts.Namespace{
				"ops": {}, "open": {}, "hidden": {}, "member": {Closed: closed}, "new": {Closed: closed}, "failed": {Closed: closed},
				"selected": {Closed: closed, Labels: map[string]string{"team": "a"}},
			},
			OperatorNamespace: facts.OperatorNamespace{
				Accounts: tc.accounts, Roles: map[string][]rbacv1.PolicyRule{"r": {{Verbs: []string{"get"}}}},
				Bindings: map[string]facts.Binding{"b": {
					RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}},
				}},
			},
		}
		k := known(f, failed)
		k.OperatorNamespaceClosed = tc.operatorNamespaceClosed
		k.Hidden = func(namespace string) bool { return namespace == "hidden" }

		p := plan.New([]scope.Scope{s}, f)
		sum := overview.Scope{Name: "S", NotRead: k.Unread(&p.Scopes[0])}

		want := slices.Sorted(maps.Keys(unknown))
		if tc.operatorNamespaceClosed {
			want = append(slices.Clone(want), "open")
			slices.Sort(want)
		}

		if !slices.Equal(sum.NotRead, want) {
			t.Errorf("%s: not read are %v, want %v", name, sum.NotRead, want)
		}

		all := overview.New([]overview.Scope{sum}, overview.OfScope(&p.Scopes[0], "S", k), nil)
		checkUnread(t, name, all, unknown, tc.holders, tc.open)

		// What is not known to have failed is not shown as that.
		for _, m := range all.Keep(overview.Filter{OnlyFailed: true}).Trees()[0].Members {
			if m.State == overview.Unknown && m.Namespace != "failed" {
				t.Errorf("%s: %s is shown as failed: %+v", name, m.Namespace, m)
			}
		}
	}
}

// TestWholeClusterThatIsNotRead holds that what is bound in the whole cluster is not called failed by who may not read that.
func TestWholeClusterThatIsNotRead(t *testing.T) {
	t.Parallel()

	f := &facts.Facts{Key: scope.TemplatesKey()}
	s := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeInstance", Name: "one"},
		Key:   scope.TemplatesKey(), Members: scope.Members{Everywhere: true},
		Binds: []scope.Binding{{Role: "r", Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}}}},
	}
	template := scope.Scope{
		Owner: scope.Owner{Kind: "ScopeTemplate", Name: "one"},
		Key:   scope.TemplatesKey(), Members: scope.Members{Everywhere: true},
		Defines: []scope.ClusterRole{{Name: "r"}},
	}
	p := plan.New([]scope.Scope{s, template}, f)

	for closed, want := range map[bool]overview.State{true: overview.Unknown, false: overview.Failed} {
		k := known(f, func(string) overview.Reason { return overview.Reason{} })
		k.Closed = func(namespace string) bool { return closed && namespace == overview.Everywhere }
		k.Rules = func(string) []rbacv1.PolicyRule { return nil }

		services := overview.OfScope(&p.Scopes[0], "S", k)
		if len(services) != 1 || services[0].State != want || services[0].Roles[0].Missing == closed {
			t.Errorf("closed %t: got %+v", closed, services)
		}
	}
}

func checkUnread(
	t *testing.T, name string, all *overview.Overview, unknown map[string]string, holders []string, open overview.State,
) {
	t.Helper()

	members := map[string]overview.MemberTree{}
	for _, m := range all.Trees()[0].Members {
		members[m.Namespace] = m
	}

	for namespace, reason := range unknown {
		if len(holders) == 0 {
			reason = overview.NotRead
		}

		m := members[namespace]
		if m.State != overview.Unknown || m.Reason != reason {
			t.Errorf("%s: %s is %q, %s; want it unknown, %s", name, namespace, m.State, m.Reason, reason)
		}

		if len(m.Accounts) != len(holders) {
			t.Errorf("%s: in %s are %+v, want %v", name, namespace, m.Accounts, holders)
		}
	}

	if m := members["open"]; m.State != open {
		t.Errorf("%s: what may be read is %q, want %q", name, m.State, open)
	}

	if m := members["gone"]; len(holders) > 0 && m.State != overview.Failed {
		t.Errorf("%s: a namespace that does not exist is %q", name, m.State)
	}

	for i := range all.Services {
		if s := &all.Services[i]; !slices.Contains(holders, s.Operator.Name) {
			t.Errorf("%s: who is %+v?", name, s.Operator)
		}
	}
}
