package served

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/picture"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

const (
	// maxColumns is how many columns are shown where the width does not say.
	maxColumns = 40
	// foldRows is the number of operators above which those that look the same share a row.
	foldRows = 30
)

// sign is how a state looks in a cell.
func sign(paint terminal.Paint, s overview.State) terminal.Text {
	shown := overview.MarkOf(s).Sign

	switch s {
	case overview.OwnNamespace:
		return paint.Bold(shown)
	case overview.Served:
		return paint.Good(shown)
	case overview.Partial, overview.Unknown:
		return paint.Warn(shown)
	case overview.Failed:
		return paint.Bad(shown)
	default:
		return paint.Dim(shown)
	}
}

// table prints a matrix for users.
func (o *MatrixOptions) table(v *reading.Cluster, m *overview.Matrix) error {
	if len(m.Operators) == 0 {
		return output.Say(o.Out, "%s", nothing(v.NotRead(), "There is no operator to show", o.NamespaceGiven))
	}

	paint := terminal.PaintFor(o.Out)
	columns := m.Columns(!o.All)
	rows := m.Rows(columns, !o.All && len(m.Operators) > foldRows)
	shown := o.fits(rows, columns)

	var b terminal.Builder

	grid := terminal.Table{}
	head := []any{paint.Bold("OPERATOR")}

	for i := range shown {
		head = append(head, strconv.Itoa(i+1))
	}

	grid.Row(head...)

	for i := range rows {
		cells := []any{terminal.Textf("%s%s", rows[i].Name(), wideMark(paint, rows[i].ClusterWide))}
		for c := range shown {
			cells = append(cells, sign(paint, rows[i].States[c]))
		}

		grid.Row(cells...)
	}

	b.Add(grid.Text())
	b.Linef("")
	b.Add(legend(paint, columns[:shown]))

	if n := len(columns) - shown; n > 0 {
		b.Linef("%d more columns are not shown; narrow with --in or --operator, or take -o html or json.", n)
	}

	if len(m.Unserved) > 0 {
		b.Linef("%s", paint.Dim("Served by none of these: "+output.Some(m.Unserved)))
	}

	b.Linef("%s", signs(paint, rows))
	b.Add(clusterWide(paint, m.ClusterWide))

	return output.Say(o.Out, "%s", b.Text())
}

// fits is how many columns there is room for.
func (o *MatrixOptions) fits(rows []overview.Row, columns []overview.Column) int {
	first := len("OPERATOR")
	for i := range rows {
		first = max(first, terminal.Columns(picture.Marked(rows[i].Name(), rows[i].ClusterWide)))
	}

	const gap = 3

	digits := len(strconv.Itoa(len(columns)))

	room := maxColumns
	if terminal.Is(o.Out) {
		room = max(1, (terminal.Width(o.Out)-first)/(digits+gap))
	}

	return min(room, len(columns))
}

// legend says which namespaces the columns are.
func legend(paint terminal.Paint, columns []overview.Column) terminal.Text {
	t := terminal.Table{}

	for i := range columns {
		names := output.Places(columns[i].Namespaces)

		count := terminal.Text{}
		if len(names) > 1 {
			count = paint.Dim(fmt.Sprintf("(%d namespaces)", len(names)))
		}

		t.Row(strconv.Itoa(i+1), output.Some(names), count)
	}

	return t.Text()
}

// signs says what the signs mean that occur.
func signs(paint terminal.Paint, rows []overview.Row) terminal.Text {
	var words []terminal.Text

	for _, m := range append(overview.Marks(), overview.NoMember()) {
		if slices.ContainsFunc(rows, func(r overview.Row) bool { return slices.Contains(r.States, m.State) }) {
			words = append(words, terminal.Textf("%s %s", sign(paint, m.State), m.Word))
		}
	}

	return terminal.Join(words, "   ")
}
