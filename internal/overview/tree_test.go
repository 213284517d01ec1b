package overview_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/overview"
)

// member is a namespace of the only tree of some services.
func member(t *testing.T, s overview.Scope, namespace string, services ...overview.Service) overview.MemberTree {
	t.Helper()

	members := overview.New([]overview.Scope{s}, services, nil).Trees()[0].Members

	i := slices.IndexFunc(members, func(m overview.MemberTree) bool { return m.Namespace == namespace })
	if i < 0 {
		t.Fatalf("%s is not in %+v", namespace, members)
	}

	return members[i]
}

// TestNoMembers: programs get an empty list for a scope without namespaces, such as a template, and not null.
func TestNoMembers(t *testing.T) {
	t.Parallel()

	if members := overview.New([]overview.Scope{{Name: "S"}}, nil, nil).Trees()[0].Members; members == nil || len(members) > 0 {
		t.Errorf("its namespaces are %#v", members)
	}
}

// TestTheStateOfAMember: a namespace whose accounts are in different states is partly served, unless one of them has nothing to
// get there, or is not known.
func TestTheStateOfAMember(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		a, b, want overview.State
		reason     string
	}{
		{overview.Served, overview.Served, overview.Served, "nothing is wrong"},
		{overview.Failed, overview.Failed, overview.Failed, "all is wrong"},
		{overview.Served, overview.Failed, overview.Partial, "one is served"},
		{overview.Served, overview.Partial, overview.Partial, "one misses something"},
		{overview.Idle, overview.Served, overview.Served, "the other has nothing to get"},
		{overview.Idle, overview.Failed, overview.Failed, "the only one that has something to get has nothing"},
		{overview.Idle, overview.Unknown, overview.Unknown, "of the only one that may have something nothing is known"},
		{overview.Unknown, overview.Served, overview.Unknown, "one may have failed"},
		{overview.Unknown, overview.Failed, overview.Unknown, "one may be served"},
		{overview.OwnNamespace, overview.OwnNamespace, overview.OwnNamespace, "it is where they run"},
	} {
		for _, states := range [][]overview.State{{tc.a, tc.b}, {tc.b, tc.a}} {
			m := member(t, overview.Scope{Name: "S"}, "m", service("a", "m", "S", states[0]), service("b", "m", "S", states[1]))
			if m.State != tc.want || len(m.Accounts) != 2 || m.Accounts[0].State != states[0] || m.Accounts[1].State != states[1] {
				t.Errorf("%v: %s, so it is %s: %+v", states, tc.reason, tc.want, m)
			}
		}
	}

	// Where operators run stays their own namespace, whatever else is there.
	own := member(t, overview.Scope{Name: "S"}, "ops",
		service("a", "ops", "S", overview.OwnNamespace), service("b", "ops", "S", overview.Failed))
	if own.State != overview.OwnNamespace {
		t.Errorf("the operator namespace is %s", own.State)
	}
}

// TestTheReasonOfAMember: a namespace that is not fully served says why, in the words of the first account that has any, or else
// of the scope.
func TestTheReasonOfAMember(t *testing.T) {
	t.Parallel()

	why := func(operator, reason string) overview.Service {
		s := service(operator, "m", "S", overview.Failed)
		s.Reason, s.Message = reason, "because of "+reason

		return s
	}
	scope := overview.Scope{Name: "S", Failed: []overview.FailedNamespace{
		{Namespace: "m", Reason: "Status", Message: "because of Status"},
	}}

	for _, tc := range []struct {
		services []overview.Service
		want     string
	}{
		{[]overview.Service{why("a", "First"), why("b", "Second")}, "First"},
		{[]overview.Service{service("a", "m", "S", overview.Served), why("b", "Second")}, "Second"},
		{[]overview.Service{service("a", "m", "S", overview.Failed)}, "Status"},
		{nil, "Status"},
	} {
		m := member(t, scope, "m", tc.services...)
		if m.Reason != tc.want || m.Message != "because of "+tc.want {
			t.Errorf("with %d accounts: %s: %s; want %s", len(tc.services), m.Reason, m.Message, tc.want)
		}

		if m.Accounts == nil || len(m.Accounts) != len(tc.services) {
			t.Errorf("with %d accounts: %+v", len(tc.services), m.Accounts)
		}
	}
}

// TestMembersOfWhichNothingIsKnown: what may not be read is unknown, also if the status says that it failed, and is there once.
func TestMembersOfWhichNothingIsKnown(t *testing.T) {
	t.Parallel()

	scope := overview.Scope{
		Name: "S", NotRead: []string{"both", "closed", "seen"},
		Failed: []overview.FailedNamespace{
			{Namespace: "both", Reason: "Refused"}, {Namespace: "gone", Reason: "Refused"}, {Namespace: "partly", Reason: "Refused"},
		},
	}

	trees := overview.New([]overview.Scope{scope}, []overview.Service{
		service("op", "seen", "S", overview.Served), service("op", "ops", "S", overview.OwnNamespace),
		service("op", "partly", "S", overview.Partial), service("op", "elsewhere", "another scope", overview.Served),
	}, nil).Trees()

	var got []string

	for _, m := range trees[0].Members {
		says := m.Reason
		if says == overview.NotRead && m.Message == "" {
			says += " without a message"
		}

		got = append(got, strings.TrimSpace(m.Namespace+" "+string(m.State)+" "+says))
	}

	want := []string{
		"ops own", "both unknown Refused", "closed unknown NotRead", "gone failed Refused", "partly partial Refused", "seen served",
	}
	if !slices.Equal(got, want) {
		t.Errorf("members are %q, want %q", got, want)
	}
}

// TestMembersAreOneGroupIfTheyAreAlike: a difference that the tree shows keeps namespaces apart, and nothing else does.
func TestMembersAreOneGroupIfTheyAreAlike(t *testing.T) {
	t.Parallel()

	for what, change := range map[string]func(s *overview.Service){
		"":            func(*overview.Service) {},
		"state":       func(s *overview.Service) { s.State = overview.Partial },
		"reason":      func(s *overview.Service) { s.Reason = "Other" },
		"message":     func(s *overview.Service) { s.Message = "other" },
		"account":     func(s *overview.Service) { s.Operator.Name = "other" },
		"role":        func(s *overview.Service) { s.Roles = []overview.Role{{Name: "Role ops/other"}} },
		"one more":    func(s *overview.Service) { s.Roles = append(s.Roles, overview.Role{Name: "Role ops/other"}) },
		"it is there": func(s *overview.Service) { s.Roles = []overview.Role{{Name: "Role ops/r"}} },
	} {
		var services []overview.Service

		for _, namespace := range []string{"a", "b", "c"} {
			s := service("op", namespace, "S", overview.Failed)
			s.Reason, s.Message, s.Roles[0].Missing = "Refused", "no", true

			if namespace == "b" {
				change(&s)
			}

			services = append(services, s)
		}

		tree := overview.New([]overview.Scope{{Name: "S"}}, services, nil).Trees()[0]

		var got []string
		for _, g := range tree.Groups(true) {
			got = append(got, strings.Join(g.Namespaces, " "))
		}

		want := []string{"a c", "b"}
		if what == "" {
			want = []string{"a b c"}
		}

		if !slices.Equal(got, want) {
			t.Errorf("another %q: groups %q, want %q", what, got, want)
		}
	}
}

// TestAccountsOfOneMemberKeepTheirStates: where in one namespace the one account fails, and in another one the other, each
// namespace says which.
func TestAccountsOfOneMemberKeepTheirStates(t *testing.T) {
	t.Parallel()

	tree := overview.New([]overview.Scope{{Name: "S"}}, []overview.Service{
		service("x", "a", "S", overview.Served), service("y", "a", "S", overview.Failed),
		service("x", "b", "S", overview.Failed), service("y", "b", "S", overview.Served),
	}, nil).Trees()[0]

	// Both are partly served; who reads one line for both would believe that it is the same account that fails.
	if groups := tree.Groups(true); len(groups) != 2 {
		t.Errorf("they are shown as one: %+v", groups)
	}
}
