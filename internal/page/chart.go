package page

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/ambit-k8s/ambit/internal/overview"
)

// Chart is an overview in the form of the map: namespaces that look alike are one block, so that its size grows with how many
// kinds of namespaces there are.
type Chart struct {
	Operators []ChartOperator `json:"operators"`
	Scopes    []ChartScope    `json:"scopes"`
	States    []overview.Mark `json:"states"`
	// Reasons are the reasons that occur; the first is empty.
	Reasons []string `json:"reasons"`
	Blocks  []Block  `json:"blocks"`
	// Unserved are the namespaces that no operator serves.
	Unserved []string `json:"unserved"`
	NotRead  []string `json:"notRead"`
	Notes    []string `json:"notes"`
	// Namespace is the namespace whose scopes were asked for; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Flags are those by which commands reach the same cluster as the same user.
	Flags []string `json:"flags,omitempty"`
}

// ChartOperator is an operator with the name by which commands know it.
type ChartOperator struct {
	overview.Operator

	Label string `json:"label"`
	// ClusterWide says what it holds in all namespaces, whatever its scopes say.
	ClusterWide []string `json:"clusterWide,omitempty"`
}

// ChartScope is a scope and its condition.
type ChartScope struct {
	Name    string   `json:"name"`
	Group   string   `json:"group"`
	Ready   string   `json:"ready"`
	Reason  string   `json:"reason"`
	Message string   `json:"message"`
	Remarks []string `json:"remarks,omitempty"`
	// Failed says how many namespaces are not fully served, NotRead of how many nothing is known.
	Failed  int `json:"failed"`
	NotRead int `json:"notRead"`
}

// Block are namespaces in which the same operators are in the same states, for the same scopes and reasons.
type Block struct {
	Namespaces []string `json:"namespaces"`
	Links      []Link   `json:"links"`
}

// Link is an operator in the namespaces of a block: the indexes of operator, scope, state and reason, and 1 for what it holds in
// the whole cluster besides serving some namespaces; and of a plan what would become of it: 1 it would be created, 2 changed,
// 3 deleted, 4 refused.
type Link [6]int

// numbers gives values numbers, in the order in which they are first seen.
type numbers[K comparable] struct {
	of    map[K]int
	order []K
}

func (n *numbers[K]) number(key K) int {
	if at, known := n.of[key]; known {
		return at
	}

	if n.of == nil {
		n.of = map[K]int{}
	}

	n.of[key] = len(n.order)
	n.order = append(n.order, key)

	return n.of[key]
}

// chartOf folds an overview. If there are marks, each belongs to the service of the same index. A message may be about one
// namespace alone, so messages are left out, and reasons stay.
func chartOf(snapshot *Snapshot, marks []int) *Chart {
	var (
		operators numbers[overview.Operator]
		scopes    numbers[string]
		reasons   numbers[string]
		known     numbers[overview.State]
		named     numbers[string]
		links     [][]Link
	)

	c := &Chart{
		Operators: []ChartOperator{}, Scopes: []ChartScope{}, States: overview.Marks(), Blocks: []Block{}, Unserved: []string{},
		NotRead: append([]string{}, snapshot.NotRead...), Notes: append([]string{}, snapshot.Notes...), Namespace: snapshot.Namespace,
		Flags: snapshot.Flags,
	}
	for _, s := range c.States {
		known.number(s.State)
	}

	reasons.number("")

	for i := range snapshot.Scopes {
		c.addScope(&snapshot.Scopes[i])
		scopes.number(snapshot.Scopes[i].Name + "\n" + snapshot.Scopes[i].Group)
		scopes.of[snapshot.Scopes[i].Name] = len(c.Scopes) - 1
	}

	for i := range snapshot.Services {
		s := &snapshot.Services[i]

		scope, declared := scopes.of[s.Scope]
		if !declared {
			// The caller sees only what this scope left in a namespace.
			c.addScope(&overview.Scope{Name: s.Scope, Ready: "Unknown"})
			scope = scopes.number(s.Scope + "\n")
			scopes.of[s.Scope] = scope
		}

		at := named.number(s.Namespace)
		if at == len(links) {
			links = append(links, nil)
		}

		link := Link{operators.number(s.Operator), scope, known.number(s.State), reasons.number(s.Reason), 0, unmarked}
		if s.Besides {
			link[4] = 1
		}

		if marks != nil {
			link[5] = marks[i]
		}

		links[at] = append(links[at], link)
	}

	c.addOperators(&operators, snapshot.ClusterWide())
	c.Reasons = reasons.order
	c.fold(named.order, links)

	for _, name := range snapshot.Namespaces {
		if _, served := named.of[name]; !served {
			c.Unserved = append(c.Unserved, name)
		}
	}

	return c
}

func (c *Chart) addOperators(operators *numbers[overview.Operator], wide []overview.ClusterWide) {
	for _, o := range operators.order {
		c.Operators = append(c.Operators, ChartOperator{Operator: o, Label: o.String()})
	}

	for i := range wide {
		if at, is := operators.of[wide[i].Operator]; is {
			c.Operators[at].ClusterWide = append(c.Operators[at].ClusterWide, wide[i].String())
		}
	}
}

func (c *Chart) addScope(s *overview.Scope) {
	c.Scopes = append(c.Scopes, ChartScope{
		Name: s.Name, Group: s.Group, Ready: s.Ready, Reason: s.Reason, Message: s.Message, Remarks: s.Remarks,
		Failed: len(s.Failed), NotRead: len(s.NotRead),
	})
}

// fold makes one block of namespaces with the same links: the whole cluster first, then operator namespaces, then the largest.
func (c *Chart) fold(names []string, links [][]Link) {
	blocks := map[string]int{}

	for i, name := range names {
		key := make([]byte, 0, 12*len(links[i])) //nolint:mnd // Mostly two bytes for each of six numbers.
		if name == overview.Everywhere {
			key = append(key, "everywhere"...)
		}

		for _, link := range links[i] {
			for _, number := range link {
				key = binary.AppendUvarint(key, uint64(number)) //nolint:gosec // G115: an index is not negative.
			}
		}

		at, is := blocks[string(key)]
		if !is {
			at = len(c.Blocks)
			blocks[string(key)] = at
			c.Blocks = append(c.Blocks, Block{Links: links[i]})
		}

		c.Blocks[at].Namespaces = append(c.Blocks[at].Namespaces, name)
	}

	for i := range c.Blocks {
		slices.Sort(c.Blocks[i].Namespaces)
	}

	slices.SortFunc(c.Blocks, func(a, b Block) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(len(b.Namespaces), len(a.Namespaces)),
			cmp.Compare(a.Namespaces[0], b.Namespaces[0]))
	})
}

func rank(b *Block) int {
	switch {
	case b.Namespaces[0] == overview.Everywhere:
		return 0
	case slices.ContainsFunc(b.Links, func(l Link) bool { return l[2] == 0 }):
		return 1
	default:
		return 2
	}
}
