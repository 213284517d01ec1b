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

func operatorNamespace(refs map[string]string) *facts.Facts {
	f := &facts.Facts{
		Key: scope.NamespaceScopes.In("ops"), Namespaces: map[string]facts.Namespace{"ops": {}, "m": {}},
		OperatorNamespace: facts.OperatorNamespace{
			Accounts: map[string]struct{}{"op": {}}, Roles: map[string][]rbacv1.PolicyRule{"r": ruleOn("secrets")},
			Bindings: map[string]facts.Binding{},
		},
	}

	for name, ref := range refs {
		kind, role, _ := strings.Cut(ref, " ")
		f.OperatorNamespace.Bindings[name] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}},
		}
	}

	return f
}

func serving(members ...string) scope.Scope {
	return scope.Scope{
		Owner: scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s"}, Key: scope.NamespaceScopes.In("ops"),
		Members: scope.Members{Named: members}, Accounts: scope.Accounts{All: true},
	}
}

func nothing(string) overview.Reason { return overview.Reason{} }

// TestRolesOfAPlan: each role is shown under the name that users know it by, with its rules as far as they may be read, and with
// the binding that was copied.
func TestRolesOfAPlan(t *testing.T) {
	t.Parallel()

	f := operatorNamespace(map[string]string{"of-role": "Role r", "of-view": "ClusterRole view"})
	p := plan.New([]scope.Scope{serving("m")}, f)
	k := known(f, nothing)
	k.Rules = func(name string) []rbacv1.PolicyRule {
		return map[string][]rbacv1.PolicyRule{"view": ruleOn("pods")}[name]
	}

	for _, s := range overview.OfScope(&p.Scopes[0], "S", k) {
		var got []string

		for _, r := range s.Roles {
			got = append(got, r.Binding+" to "+r.Name+": "+r.Rules[0].Resources[0])
		}

		slices.Sort(got)

		if want := []string{
			"RoleBinding ops/of-role to Role ops/r: secrets", "RoleBinding ops/of-view to ClusterRole view: pods",
		}; !slices.Equal(got, want) {
			t.Errorf("in %s: %q, want %q", s.Namespace, got, want)
		}
	}
}

// TestWhatIsStillToBeWrittenIsMissing: an account has what its plan would not write any more. A role whose rules are not there
// gives nothing, though its binding is.
func TestWhatIsStillToBeWrittenIsMissing(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		left      func(c *plan.Change) bool
		state     overview.State
		missing   []string
		nobodySay overview.Reason
		want      string
	}{
		"nothing is left": {func(*plan.Change) bool { return false }, overview.Served, nil, overview.Reason{}, ""},
		"everything is left, and the status does not say why": {
			func(*plan.Change) bool { return true }, overview.Failed, []string{"ClusterRole view", "Role ops/r"},
			overview.Reason{}, "Pending",
		},
		"everything is left, and the status says why": {
			func(*plan.Change) bool { return true }, overview.Failed, []string{"ClusterRole view", "Role ops/r"},
			overview.Reason{Reason: "Refused"}, "Refused",
		},
		"only the copy of the Role is left": {
			func(c *plan.Change) bool { return c.Key.Kind == "Role" }, overview.Partial, []string{"Role ops/r"},
			overview.Reason{}, "Pending",
		},
		"only one binding is left": {
			func(c *plan.Change) bool { return c.Key.Kind == "RoleBinding" && c.Copy.RoleRef.Kind == "ClusterRole" },
			overview.Partial, []string{"ClusterRole view"}, overview.Reason{}, "Pending",
		},
	} {
		f := operatorNamespace(map[string]string{"of-role": "Role r", "of-view": "ClusterRole view"})
		p := plan.New([]scope.Scope{serving("m")}, f)
		s := &p.Scopes[0]

		s.Grant = slices.DeleteFunc(s.Grant, func(c plan.Change) bool { return !tc.left(&c) })
		k := known(f, func(string) overview.Reason { return tc.nobodySay })
		k.Rules = func(string) []rbacv1.PolicyRule { return nil }

		services := overview.OfScope(s, "S", k)

		at := slices.IndexFunc(services, func(s overview.Service) bool { return s.Namespace == "m" })
		if at < 0 {
			t.Fatalf("%s: services are %+v", reason, services)
		}

		var missing []string

		for _, r := range services[at].Roles {
			if r.Missing {
				missing = append(missing, r.Name)
			}
		}

		slices.Sort(missing)

		if got := &services[at]; got.State != tc.state || !slices.Equal(missing, tc.missing) || got.Reason != tc.want ||
			len(got.Roles) != 2 || got.Scope != "S" {
			t.Errorf("%s: %+v", reason, got)
		}

		// Its own namespace needs no copies.
		own := slices.IndexFunc(services, func(s overview.Service) bool { return s.Namespace == "ops" })
		if own < 0 || slices.ContainsFunc(services[own].Roles, func(r overview.Role) bool { return r.Missing }) {
			t.Errorf("%s: in its own namespace: %+v", reason, services[own])
		}
	}
}

// TestWhyAMemberIsNotKnown: who may not read a namespace learns what its scope's status says of it, and where the limit is.
func TestWhyAMemberIsNotKnown(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		operatorNamespaceClosed bool
		reported                []string
		want                    string
	}{
		"the status says nothing": {false, nil, "you may not read what is there, so whether it is served is unknown"},
		"the status says that it is served": {
			false, []string{"m"}, "you may not read what is there; its scope's status says that it is served",
		},
		"the operator namespace may not be read": {
			true, nil, "you may not read what is in namespace ops, so whether it is served is unknown",
		},
	} {
		f := operatorNamespace(map[string]string{"of-role": "Role r"})
		f.Namespaces["m"] = facts.Namespace{Closed: "no"}
		declared := serving("m")
		declared.Reported = tc.reported
		p := plan.New([]scope.Scope{declared}, f)
		k := known(f, nothing)
		k.OperatorNamespaceClosed = tc.operatorNamespaceClosed

		for _, s := range overview.OfScope(&p.Scopes[0], "S", k) {
			if s.Namespace != "m" {
				continue
			}

			if s.State != overview.Unknown || s.Reason != overview.NotRead || s.Message != tc.want {
				t.Errorf("%s: it is %s, %s: %q, want %q", reason, s.State, s.Reason, s.Message, tc.want)
			}

			if tc.operatorNamespaceClosed && len(s.Roles) > 0 {
				t.Errorf("%s: it is said to have %+v", reason, s.Roles)
			}
		}
	}
}

// TestWhereOperatorsFinish: who left a scope, and keeps permissions until operators have finished there, is served that long.
func TestWhereOperatorsFinish(t *testing.T) {
	t.Parallel()

	left := func(over, terminating bool) plan.Finishing {
		return plan.Finishing{Namespace: "m", Over: over, Terminating: terminating}
	}
	since, gone := map[string]time.Time{"m": time.Unix(1, 0)}, []plan.Absent{{Namespace: "m"}}

	for reason, tc := range map[string]struct {
		says   map[string]time.Time
		leaves []plan.Finishing
		absent []plan.Absent
		want   string
	}{
		"finishing":                 {since, []plan.Finishing{left(false, false)}, nil, "m served Finishing"},
		"finishing and terminating": {since, []plan.Finishing{left(false, true)}, gone, "m served Finishing"},
		"over":                      {since, []plan.Finishing{left(true, false)}, nil, ""},
		"over and terminating":      {since, []plan.Finishing{left(true, true)}, gone, "m failed "},
		"gone":                      {since, nil, nil, ""},
		"would leave by a plan":     {nil, []plan.Finishing{left(false, false)}, nil, ""},
	} {
		f := operatorNamespace(map[string]string{"of-role": "Role r"})
		p := plan.New([]scope.Scope{serving()}, f)
		s := &p.Scopes[0]
		s.Scope.Finishing, s.Leaves, s.Absent = tc.says, tc.leaves, tc.absent

		var got []string

		for _, service := range overview.OfScope(s, "S", known(f, nothing)) {
			if service.Namespace == "m" {
				got = append(got, service.Namespace+" "+string(service.State)+" "+service.Reason)
			}
		}

		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}
