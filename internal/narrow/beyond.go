package narrow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/rights"
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

	nobody, bySubject := newHolders(), map[rbacv1.Subject]*holders{}

	for i := range had {
		of := bySubject[had[i].subject]
		if of == nil {
			of = newHolders()
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
		of, is := bySubject[has[i].subject]
		if !is {
			of = nobody
		}

		for _, m := range has[i].beyond(of) {
			m.New = !is && m.Account != Account{}
			out = append(out, m)
		}
	}

	return out, nil
}

// holders are the grants of an old version to a subject, with those that hold in each place. Places in which the same ones hold
// have the same set; 0 is where none does.
type holders struct {
	all  []*grant
	at   map[place][]int
	sets map[place]int
	// held are the rules of sets, and compared what others give beyond them and beyond those of the whole cluster: many roles are
	// bound to one account, and one role many times.
	held     map[int]*holding
	compared map[comparison][]rbacv1.PolicyRule
}

// holding is what holds in a place.
type holding struct {
	rules   *rights.Held
	unknown map[string]bool
}

// list is one list of rules, wherever it is held.
type list struct {
	first  *rbacv1.PolicyRule
	length int
}

type comparison struct {
	list

	set int
}

func listOf(rules []rbacv1.PolicyRule) list {
	if len(rules) == 0 {
		return list{}
	}

	return list{&rules[0], len(rules)}
}

func newHolders() *holders {
	return &holders{
		at: map[place][]int{}, sets: map[place]int{}, held: map[int]*holding{}, compared: map[comparison][]rbacv1.PolicyRule{},
	}
}

func (h *holders) unite() {
	known := map[string]int{}

	for p, of := range h.at {
		key := fmt.Sprint(of)
		if known[key] == 0 {
			known[key] = len(known) + 1
		}

		h.sets[p] = known[key]
	}
}

// in is what holds in a place by what is given there alone.
func (h *holders) in(p place) *holding {
	if of := h.held[h.sets[p]]; of != nil {
		return of
	}

	var rules [][]rbacv1.PolicyRule

	out, seen := &holding{unknown: map[string]bool{}}, map[list]bool{}

	for _, i := range h.at[p] {
		g := h.all[i]
		if of := listOf(g.rules); !seen[of] {
			seen[of] = true
			rules = append(rules, g.rules)
		}

		for _, from := range g.unknown {
			out.unknown[from] = true
		}
	}

	out.rules = rights.NewHeld(rules...)
	h.held[h.sets[p]] = out

	return out
}

// beyond is what it gives beyond grants of another version to the same subject; once for all places where these give the same.
func (g *grant) beyond(had *holders) (out []More) {
	var order []int

	groups := map[int][]place{}

	for _, p := range g.places {
		set := had.sets[p]
		if groups[set] == nil {
			order = append(order, set)
		}

		groups[set] = append(groups[set], p)
	}

	for _, set := range order {
		if m := g.beyondAt(groups[set], had); m != nil {
			out = append(out, *m)
		}
	}

	return out
}

// beyondAt is what it gives in places beyond what holds there; nil for nothing. Rules that nobody knows may give anything, so
// only a grant of those from the same place holds as much.
func (g *grant) beyondAt(places []place, had *holders) *More {
	everywhere, there := had.in(place{}), had.in(places[0])
	key := comparison{listOf(g.rules), had.sets[places[0]]}

	more, is := had.compared[key]
	if !is {
		more = authority.Merge(rights.MissingFrom(g.rules, everywhere.rules, there.rules))
		had.compared[key] = more
	}

	m := newMore(g.doc)
	m.Binding, m.Role = g.binding, g.role
	m.Rules, m.Rights = more, reach.Rights(more)
	m.Unknown = slices.ContainsFunc(g.unknown, func(from string) bool { return !everywhere.unknown[from] && !there.unknown[from] })

	if len(more) == 0 && !m.Unknown {
		return nil
	}

	m.in(places)
	m.of(&g.subject)

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
