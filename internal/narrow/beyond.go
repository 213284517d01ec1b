package narrow

import (
	"errors"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// place is where rules hold: in a namespace, where a declaration says, or in the whole cluster if both are empty.
type place struct{ namespace, text string }

// grant is what one binding gives to one subject, or a label to whoever is bound to a ClusterRole.
type grant struct {
	subject rbacv1.Subject
	places  []place
	rules   []rbacv1.PolicyRule
	// known says whether the rules are: of a role that is neither in the files nor known there are none.
	known         bool
	binding, role string
	doc           *Document
}

// maxComparisons bounds what a check compares. The manifests of real operators take some thousands.
const maxComparisons = 50_000_000

var errTooMuch = errors.New("the versions give too much to too many in too many namespaces to be compared; split the files")

// beyondGrants is what grants give beyond those of another version.
func beyondGrants(had, has []grant) ([]More, error) {
	bySubject := map[rbacv1.Subject][]holder{}

	for i := range had {
		at := map[place]bool{}
		for _, p := range had[i].places {
			at[p] = true
		}

		bySubject[had[i].subject] = append(bySubject[had[i].subject], holder{&had[i], at})
	}

	out, left := []More{}, maxComparisons

	for i := range has {
		of := bySubject[has[i].subject]
		if left -= len(has[i].places) * (1 + len(of)); left < 0 {
			return nil, errTooMuch
		}

		out = append(out, has[i].beyond(of)...)
	}

	return out, nil
}

// holder is a grant of an old version, with its places as a set.
type holder struct {
	*grant

	at map[place]bool
}

// beyond is what it gives beyond grants of another version to the same subject, once for all places where these give the same.
// Rules that nobody knows may give anything, so only a grant of the same role, whose rules were not known either, holds as much.
func (g *grant) beyond(had []holder) []More {
	var keys []string

	places := map[string][]place{}
	holders := map[string][]holder{}

	for _, p := range g.places {
		var of []holder

		key := make([]byte, len(had))

		for i := range had {
			if had[i].at[place{}] || had[i].at[p] {
				of = append(of, had[i])
				key[i] = 1
			}
		}

		if places[string(key)] == nil {
			keys = append(keys, string(key))
		}

		places[string(key)] = append(places[string(key)], p)
		holders[string(key)] = of
	}

	var out []More

	for _, key := range keys {
		if m := g.beyondAt(places[key], holders[key]); m != nil {
			m.New = len(had) == 0 && m.Whose == "" && m.BoundTo == ""
			out = append(out, *m)
		}
	}

	return out
}

// beyondAt is what it gives in places beyond what holds there; nil for nothing.
func (g *grant) beyondAt(places []place, had []holder) *More {
	var held []rbacv1.PolicyRule

	same := false

	for _, of := range had {
		held = append(held, of.rules...)
		same = same || !of.known && of.role == g.role
	}

	m := newMore(g.doc)
	m.Unknown, m.Binding, m.Role = !g.known && !same, g.binding, g.role
	m.in(places)
	m.of(&g.subject)

	if more := authority.Missing(held, g.rules); more != nil {
		m.Rules, m.Rights = more, reach.Rights(more)
	} else if !m.Unknown {
		return nil
	}

	return &m
}

func (m *More) in(places []place) {
	var names []string

	for _, p := range places {
		switch {
		case p.namespace != "":
			names = append(names, p.namespace)
		case p.text != "":
			m.Places = append(m.Places, p.text)
		}
	}

	if len(names) == 1 {
		m.Namespace = names[0]
	} else if len(names) > 1 {
		m.Places = append([]string{"in the namespaces " + strings.Join(names, ", ")}, m.Places...)
	}
}

func (m *More) of(s *rbacv1.Subject) {
	switch s.Kind {
	case kindClusterRole:
		m.BoundTo = s.Name
	case kindRole:
		m.Whose = "whoever is bound to " + kindRole + " " + s.Name
	case kindTemplate:
		m.Whose = "whoever is named by " + kindTemplate + " " + s.Name
	case mutates, validates, converts, serves:
		m.Whose = "the " + s.Kind + " of " + s.Name
	default:
		m.Account = Account{Namespace: s.Namespace, Name: s.Name}
	}
}
