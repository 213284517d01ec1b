package overview_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/overview"
)

// TestTheBestOfTwoScopesIsShown: what one scope gives is there, whatever another one fails to give, in whichever order they come.
func TestTheBestOfTwoScopesIsShown(t *testing.T) {
	t.Parallel()

	// Each is better than those before it.
	order := []overview.State{
		overview.Failed, overview.Idle, overview.Unknown, overview.Partial, overview.Served, overview.OwnNamespace,
	}

	for i, worse := range order {
		for _, better := range order[i:] {
			for _, states := range [][]overview.State{{worse, better}, {better, worse}} {
				m := overview.New(nil, []overview.Service{
					service("op", "a", "one", states[0]), service("op", "a", "two", states[1]),
				}, nil).Matrix()

				if len(m.Cells) != 1 || m.Cells[0].State != better || len(m.Cells[0].Services) != 2 {
					t.Errorf("%v are shown as %+v", states, m.Cells)
				}
			}
		}
	}
}

// TestCellsSayWhoseTheyAre: each cell is found by its operator and namespace, and says both, also where other cells have the same
// namespace or operator.
func TestCellsSayWhoseTheyAre(t *testing.T) {
	t.Parallel()

	m := overview.New(nil, []overview.Service{
		service("b", "n", "S", overview.Served), service("a", "n", "S", overview.Failed), service("a", "m", "S", overview.Partial),
		service("a", "", "S", overview.Served),
	}, []string{"empty", "m", "n"}).Matrix()

	if len(m.Cells) != 4 || !slices.Equal(m.Namespaces, []string{"", "m", "n"}) || !slices.Equal(m.Unserved, []string{"empty"}) {
		t.Errorf("columns %q, unserved %q, cells %+v", m.Namespaces, m.Unserved, m.Cells)
	}

	for i := range m.Cells {
		c := &m.Cells[i]
		if found := m.At(c.Operator, c.Namespace); found != c {
			t.Errorf("%s in %q is %+v", c.Operator, c.Namespace, found)
		}
	}

	if b := (overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: "b"}); m.At(b, "m") != nil || m.At(b, "n") == nil {
		t.Errorf("%s is in m: %+v, and in n: %+v", b, m.At(b, "m"), m.At(b, "n"))
	}
}

// columnsOf are the namespaces of each column.
func columnsOf(columns []overview.Column) (out []string) {
	for _, c := range columns {
		out = append(out, strings.Join(c.Namespaces, " "))
	}

	return out
}

// TestOrderOfColumns: the whole cluster comes first and shares no column, then what operators have of their own, then the most.
func TestOrderOfColumns(t *testing.T) {
	t.Parallel()

	services := []overview.Service{
		service("op", "", "S", overview.Served), service("op", "ops", "S", overview.OwnNamespace),
		service("op", "a-broken", "S", overview.Failed), service("op", "b-idle", "S", overview.Idle),
	}
	for _, name := range []string{"x", "y", "z"} {
		services = append(services, service("op", name, "S", overview.Served))
	}

	got := columnsOf(overview.New(nil, services, nil).Matrix().Columns(true))
	if want := []string{"", "ops", "x y z", "a-broken", "b-idle"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
}

// TestRowsOfOperatorsThatLookTheSame: operators share a row only if they are of one namespace and kind, and alike in every column
// and in the whole cluster, and only if rows are to be folded.
func TestRowsOfOperatorsThatLookTheSame(t *testing.T) {
	t.Parallel()

	var services []overview.Service

	for _, name := range []string{"a", "b", "c", "wide"} {
		services = append(services, service(name, "m", "S", overview.Served), service(name, "n", "S", overview.Served))
	}

	services[3].State = overview.Failed // of b, in n

	other := service("a", "m", "S", overview.Served)
	other.Operator.Namespace = "other"
	elsewhere := other
	elsewhere.Namespace = "n"
	services = append(services, other, elsewhere)

	wide := overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: "wide"}
	m := overview.New([]overview.Scope{{
		Name: "S", ClusterWide: []overview.ClusterWide{{Operator: wide, Binding: "b"}},
	}}, services, nil).Matrix()
	columns := m.Columns(true)

	rows := func(fold bool) (out []string) {
		for _, r := range m.Rows(columns, fold) {
			var names []string
			for _, o := range r.Operators {
				names = append(names, o.String())
			}

			row := strings.Join(names, " ")
			if r.ClusterWide {
				row += " everywhere"
			}

			out = append(out, row)
		}

		return out
	}

	if got, want := rows(true), []string{"ops/a ops/c", "ops/b", "ops/wide everywhere", "other/a"}; !slices.Equal(got, want) {
		t.Errorf("folded: %q, want %q", got, want)
	}

	if got, want := rows(false), []string{"ops/a", "ops/b", "ops/c", "ops/wide everywhere", "other/a"}; !slices.Equal(got, want) {
		t.Errorf("not folded: %q, want %q", got, want)
	}

	for _, o := range m.Operators {
		if m.IsClusterWide(o) != (o == wide) {
			t.Errorf("%s holds something everywhere: %t", o, m.IsClusterWide(o))
		}
	}
}

// TestWhatIsHeldEverywhereIsSaidOnce: each binding of an operator is there once, what matters most first, and only for operators
// that are shown.
func TestWhatIsHeldEverywhereIsSaidOnce(t *testing.T) {
	t.Parallel()

	account := func(name string) overview.Operator {
		return overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: name}
	}
	pods := overview.ClusterWide{Operator: account("op"), Binding: "a-pods"}
	secrets := overview.ClusterWide{Operator: account("op"), Binding: "z-secrets", Sensitive: true}
	of := func(c overview.ClusterWide, operator string) overview.ClusterWide {
		c.Operator = account(operator)

		return c
	}
	all := overview.New([]overview.Scope{
		{Name: "one", ClusterWide: []overview.ClusterWide{pods, secrets, of(secrets, "hidden")}},
		{Name: "two", ClusterWide: []overview.ClusterWide{secrets, of(secrets, "second"), of(pods, "of-one")}},
	}, []overview.Service{
		service("op", "m", "one", overview.Served), service("op", "n", "two", overview.Served),
		service("second", "m", "two", overview.Served), service("of-one", "m", "one", overview.Served),
	}, nil)

	said := func(o *overview.Overview) (out []string) {
		for _, c := range o.ClusterWide() {
			out = append(out, c.Operator.Name+" "+c.Binding)
		}

		return out
	}

	if got, want := said(all), []string{"op z-secrets", "op a-pods", "second z-secrets"}; !slices.Equal(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}

	kept := all.Keep(overview.Filter{Operator: func(name string) bool { return name == "ops/second" }})
	if got, want := said(kept), []string{"second z-secrets"}; !slices.Equal(got, want) {
		t.Errorf("of one operator it says %q, want %q", got, want)
	}
}
