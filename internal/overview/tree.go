package overview

import (
	"cmp"
	"slices"
	"strings"
)

// ScopeTree is a scope with everything below it.
type ScopeTree struct {
	Scope

	Members []MemberTree `json:"members"`
}

// MemberTree is a namespace of a scope; the empty name is the whole cluster.
type MemberTree struct {
	Namespace string `json:"namespace"`
	State     State  `json:"state"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`

	Accounts []AccountTree `json:"accounts"`
}

// AccountTree is an account in a namespace.
type AccountTree struct {
	Operator

	State State  `json:"state"`
	Roles []Role `json:"roles"`
}

// Trees returns the trees of all scopes.
func (o *Overview) Trees() []ScopeTree {
	out := make([]ScopeTree, len(o.Scopes))
	at := map[string]int{}

	for i := range o.Scopes {
		out[i] = ScopeTree{Scope: o.Scopes[i], Members: append([]MemberTree{}, o.Scopes[i].Empty...)}
		at[o.Scopes[i].Name] = i
	}

	members := map[string]int{}

	for i := range o.Services {
		s := &o.Services[i]

		tree, known := at[s.Scope]
		if !known {
			continue
		}

		key := s.Scope + "\n" + s.Namespace

		m, known := members[key]
		if !known {
			m = len(out[tree].Members)
			members[key] = m
			out[tree].Members = append(out[tree].Members, MemberTree{Namespace: s.Namespace, State: s.State})
		}

		out[tree].Members[m].add(s)
	}

	for i := range out {
		out[i].addFailed()
	}

	return out
}

func (m *MemberTree) add(s *Service) {
	m.Accounts = append(m.Accounts, AccountTree{s.Operator, s.State, s.Roles})

	if m.Reason == "" {
		m.Reason, m.Message = s.Reason, s.Message
	}

	if m.State != s.State && m.State != OwnNamespace {
		m.State = worse(m.State, s.State)
	}
}

// worse is the state of a namespace whose accounts are in two different states.
func worse(a, b State) State {
	switch {
	case a == Idle:
		return b
	case b == Idle:
		return a
	case a == Unknown || b == Unknown:
		return Unknown
	default:
		return Partial
	}
}

// addFailed adds the namespaces of which no account is known.
func (t *ScopeTree) addFailed() {
	for _, f := range t.Failed {
		at := slices.IndexFunc(t.Members, func(m MemberTree) bool { return m.Namespace == f.Namespace })
		if at >= 0 {
			if t.Members[at].Reason == "" {
				t.Members[at].Reason, t.Members[at].Message = f.Reason, f.Message
			}

			continue
		}

		state := Failed
		if slices.Contains(t.NotRead, f.Namespace) {
			state = Unknown
		}

		t.addMember(f.Namespace, state, Reason{f.Reason, f.Message})
	}

	for _, name := range t.NotRead {
		if !slices.ContainsFunc(t.Members, func(m MemberTree) bool { return m.Namespace == name }) {
			t.addMember(name, Unknown, Reason{NotRead, "you may not read what is there"})
		}
	}

	slices.SortFunc(t.Members, func(a, b MemberTree) int {
		return cmp.Or(cmp.Compare(boolRank(a.State != OwnNamespace), boolRank(b.State != OwnNamespace)),
			cmp.Compare(a.Namespace, b.Namespace))
	})
}

func (t *ScopeTree) addMember(namespace string, state State, why Reason) {
	t.Members = append(t.Members, MemberTree{
		Namespace: namespace, State: state, Reason: why.Reason, Message: why.Message, Accounts: []AccountTree{},
	})
}

func boolRank(b bool) int {
	if b {
		return 1
	}

	return 0
}

// Group are members of a scope in which the same accounts have the same roles, in the same state.
type Group struct {
	Namespaces []string
	MemberTree
}

// Groups makes groups of the members of a tree. With fold, those that look the same share one, but for the operator namespace.
func (t *ScopeTree) Groups(fold bool) []Group {
	at := map[string]int{}

	var out []Group

	for i := range t.Members {
		m := &t.Members[i]

		key := m.Namespace
		if fold {
			key = m.key()
		}

		g, known := at[key]
		if !known {
			g = len(out)
			at[key] = g
			out = append(out, Group{MemberTree: *m})
		}

		out[g].Namespaces = append(out[g].Namespaces, m.Namespace)
	}

	return out
}

func (m *MemberTree) key() string {
	parts := []string{string(m.State), m.Reason, m.Message}
	for i := range m.Accounts {
		a := &m.Accounts[i]
		parts = append(parts, a.String(), string(a.State))

		for _, r := range a.Roles {
			parts = append(parts, r.Name)
			if r.Missing {
				parts = append(parts, "-")
			}
		}
	}

	return strings.Join(parts, "\x00")
}
