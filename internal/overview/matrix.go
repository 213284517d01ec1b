package overview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// Matrix is operators by namespaces.
type Matrix struct {
	Operators []Operator `json:"operators"`
	// Namespaces are the columns; the empty name, if it is there, comes first and is the whole cluster.
	Namespaces []string `json:"namespaces"`
	// Cells are the services of each pair that has some, sorted by operator and namespace.
	Cells []Cell `json:"cells"`
	// Unserved are the namespaces that no operator serves.
	Unserved []string `json:"unserved"`
	// ClusterWide is what operators hold in all namespaces, whatever their cells say.
	ClusterWide []ClusterWide `json:"clusterWide"`

	index map[pair]int
}

// Cell is what an operator has in a namespace.
type Cell struct {
	Operator  Operator `json:"operator"`
	Namespace string   `json:"namespace"`
	State     State    `json:"state"`
	// Services are why: mostly one.
	Services []Service `json:"services"`
}

type pair struct {
	operator  Operator
	namespace string
}

// Matrix makes a matrix of the services.
func (o *Overview) Matrix() *Matrix {
	m := &Matrix{
		Operators: []Operator{}, Namespaces: []string{}, Cells: []Cell{}, Unserved: []string{}, index: map[pair]int{},
		ClusterWide: o.ClusterWide(),
	}
	columns := map[string]struct{}{}

	for i := range o.Services {
		s := &o.Services[i]
		key := pair{s.Operator, s.Namespace}

		if len(m.Operators) == 0 || m.Operators[len(m.Operators)-1] != s.Operator {
			m.Operators = append(m.Operators, s.Operator)
		}

		columns[s.Namespace] = struct{}{}

		at, known := m.index[key]
		if !known {
			at = len(m.Cells)
			m.index[key] = at
			m.Cells = append(m.Cells, Cell{Operator: s.Operator, Namespace: s.Namespace, State: s.State})
		} else if m.Cells[at].State != s.State {
			m.Cells[at].State = better(m.Cells[at].State, s.State)
		}

		m.Cells[at].Services = append(m.Cells[at].Services, *s)
	}

	if _, everywhere := columns[Everywhere]; everywhere {
		m.Namespaces = append(m.Namespaces, Everywhere)
	}

	for _, name := range o.Namespaces {
		if _, served := columns[name]; served {
			m.Namespaces = append(m.Namespaces, name)
		} else {
			m.Unserved = append(m.Unserved, name)
		}
	}

	return m
}

// better is the state of a cell that two scopes serve: what one of them gives is there.
func better(a, b State) State {
	order := []State{Failed, Idle, Unknown, Partial, Served, OwnNamespace}

	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// At returns the cell of an operator in a namespace; nil when there is none.
func (m *Matrix) At(o Operator, namespace string) *Cell {
	at, known := m.index[pair{o, namespace}]
	if !known {
		return nil
	}

	return &m.Cells[at]
}

// Column are namespaces in which all operators are in the same states.
type Column struct {
	Namespaces []string
	States     []State
}

// Columns makes columns of the namespaces. With fold, those that look the same share one: the whole cluster comes first, then
// those with operator namespaces, then the largest.
func (m *Matrix) Columns(fold bool) []Column {
	at := map[string]int{}

	var out []Column

	for _, name := range m.Namespaces {
		states := make([]State, len(m.Operators))
		parts := make([]string, len(m.Operators))

		for i, o := range m.Operators {
			if cell := m.At(o, name); cell != nil {
				states[i] = cell.State
				parts[i] = string(cell.State)
			}
		}

		key := strings.Join(parts, ",")
		if name == Everywhere || !fold {
			key = name // The whole cluster never shares a column.
		}

		c, known := at[key]
		if !known {
			c = len(out)
			at[key] = c
			out = append(out, Column{States: states})
		}

		out[c].Namespaces = append(out[c].Namespaces, name)
	}

	if !fold {
		return out
	}

	slices.SortStableFunc(out, func(a, b Column) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(len(b.Namespaces), len(a.Namespaces)),
			cmp.Compare(a.Namespaces[0], b.Namespaces[0]))
	})

	return out
}

func (c *Column) rank() int {
	switch {
	case c.Namespaces[0] == Everywhere:
		return 0
	case slices.Contains(c.States, OwnNamespace):
		return 1
	default:
		return 2
	}
}

// Row are operators that are in the same states in all columns.
type Row struct {
	Operators []Operator
	States    []State
	// ClusterWide says that they hold something in all namespaces besides.
	ClusterWide bool
}

// Name names the first of its operators, and counts the others.
func (r *Row) Name() string {
	return printable.Counted([]string{r.Operators[0].String()}, "", len(r.Operators)-1)
}

// Rows makes rows of the operators. With fold, operators of a namespace that look the same in the columns share one.
func (m *Matrix) Rows(columns []Column, fold bool) []Row {
	at := map[string]int{}

	var out []Row

	for i, o := range m.Operators {
		wide := m.IsClusterWide(o)
		states := make([]State, len(columns))
		parts := append(make([]string, 0, 3+len(columns)), o.Namespace, o.Kind, strconv.FormatBool(wide))

		for c := range columns {
			states[c] = columns[c].States[i]
			parts = append(parts, string(states[c]))
		}

		key := strings.Join(parts, ",")

		r, known := at[key]
		if !known || !fold {
			r = len(out)
			at[key] = r
			out = append(out, Row{States: states, ClusterWide: wide})
		}

		out[r].Operators = append(out[r].Operators, o)
	}

	return out
}
