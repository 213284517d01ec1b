package narrow

import (
	"errors"
	"fmt"
	"slices"
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
	// unknown says where rules come from that nobody here knows.
	unknown       []string
	binding, role string
	doc           *Document
}

// unknownNote says why nobody knows what a binding gives.
func (g *grant) unknownNote(inFiles bool) string {
	if inFiles {
		return g.binding + " refers to " + g.role + ", which may have more rules than the files say, so what it gives is unknown"
	}

	return g.binding + " refers to " + g.role + ", which is not in the files, so what it gives is unknown"
}

// maxPlaces bounds for how many places a check looks at what holds there. The manifests of real operators take some hundreds.
const maxPlaces = 10_000_000

var errTooMuch = errors.New("the versions give too much in too many namespaces to be compared; split the files")

// beyondGrants is what grants give beyond those of another version.
func beyondGrants(had, has []grant) ([]More, error) {
	places := 0

	for _, all := range [][]grant{had, has} {
		for i := range all {
			places += len(all[i].places)
		}
	}

	if places > maxPlaces {
		return nil, errTooMuch
	}

	bySubject := map[rbacv1.Subject]*holders{}

	for i := range had {
		of := bySubject[had[i].subject]
		if of == nil {
			of = &holders{at: map[place][]int{}}
			bySubject[had[i].subject] = of
		}

		for _, p := range had[i].places {
			of.at[p] = append(of.at[p], len(of.all))
		}

		of.all = append(of.all, &had[i])
	}

	for _, of := range bySubject {
		of.unite()
	}

	out := []More{}
	for i := range has {
		out = append(out, has[i].beyond(bySubject[has[i].subject])...)
	}

	return out, nil
}

// holders are the grants of an old version to a subject, with those that hold in each place. Places in which the same ones hold
// have the same set.
type holders struct {
	all  []*grant
	at   map[place][]int
	sets map[place]int
}

func (h *holders) unite() {
	h.sets = map[place]int{}
	known := map[string]int{}

	for p, of := range h.at {
		key := fmt.Sprint(of)
		if known[key] == 0 {
			known[key] = len(known) + 1
		}

		h.sets[p] = known[key]
	}
}

// in are the grants that hold in a place.
func (h *holders) in(p place) (out []*grant) {
	for where := range map[place]bool{{}: true, p: true} {
		for _, i := range h.at[where] {
			out = append(out, h.all[i])
		}
	}

	return out
}

// beyond is what it gives beyond grants of another version to the same subject, nil for none; once for all places where these
// give the same. Rules that nobody knows may give anything, so only a grant of those from the same place holds as much.
func (g *grant) beyond(had *holders) (out []More) {
	isNew := had == nil
	if isNew {
		had = &holders{}
	}

	var groups [][]place

	group := map[int]int{}

	for _, p := range g.places {
		set := had.sets[p]

		at, is := group[set]
		if !is {
			at, groups = len(groups), append(groups, nil)
			group[set] = at
		}

		groups[at] = append(groups[at], p)
	}

	for _, places := range groups {
		if m := g.beyondAt(places, had.in(places[0])); m != nil {
			m.New = isNew && m.Whose == "" && m.BoundTo == ""
			out = append(out, *m)
		}
	}

	return out
}

// beyondAt is what it gives in places beyond what holds there; nil for nothing.
func (g *grant) beyondAt(places []place, had []*grant) *More {
	var held []rbacv1.PolicyRule

	unknown := slices.Clone(g.unknown)

	for _, of := range had {
		held = append(held, of.rules...)
		unknown = slices.DeleteFunc(unknown, func(from string) bool { return slices.Contains(of.unknown, from) })
	}

	m := newMore(g.doc)
	m.Unknown, m.Binding, m.Role = len(unknown) > 0, g.binding, g.role
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
