package picture

import (
	"io"
	"slices"
	"unicode/utf8"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// The measures of the drawing, in its units.
const (
	cellSize   = 26
	letter     = 7.4 // How wide a letter is, at most.
	margin     = 16
	headLength = 36 // Characters of a column's name.
	maxNames   = 2
)

const (
	svgHead markup = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" ` +
		`aria-label="Operators by namespaces">` + "\n"
	svgStyle markup = `<style>
text { font: 13px system-ui, sans-serif; fill: #1b2430; }
.back { fill: #ffffff; } .cell { stroke: #d8dee6; fill: #ffffff; }
.own { fill: #e6eaf0; } .served { fill: #e3f4e8; } .idle { fill: #f3f5f8; }
.partial { fill: #fdf0d5; } .failed { fill: #fbe4e2; } .unknown { fill: #f3f5f8; }
text.own { fill: #4a5568; } text.served { fill: #0a7d33; } text.idle, text.none { fill: #5d6b7a; }
text.partial, text.unknown { fill: #8a5a00; }
text.failed { fill: #b3261e; } .sign { text-anchor: middle; }
@media (prefers-color-scheme: dark) {
text { fill: #e6eaf0; } .back { fill: #12161c; } .cell { stroke: #2c3541; fill: #12161c; }
.own { fill: #2a3340; } .served { fill: #16301f; } .idle { fill: #1a2029; }
.partial { fill: #3a2d10; } .failed { fill: #401b19; } .unknown { fill: #1a2029; }
text.own { fill: #c3ccd8; } text.served { fill: #6fd392; } text.idle, text.none { fill: #9aa7b6; }
text.partial, text.unknown { fill: #f0c36d; }
text.failed { fill: #ff9a92; }
}
</style>
`
)

type figure struct {
	X, Y, TextX, TextY int
	Class, Text, Full  string
}

type sheet struct {
	Width, Height              int
	Heads, Rows, Cells, Legend []figure
}

// SVG writes the drawing. Namespaces that look the same share a column, and operators that do share a row.
func SVG(w io.Writer, m *overview.Matrix) error {
	columns := m.Columns(true)
	rows := m.Rows(columns, true)
	s := &sheet{}

	left := margin
	for i := range rows {
		left = max(left, margin+width(rowName(&rows[i]))+margin)
	}

	longest := 0
	for i := range columns {
		longest = max(longest, width(headName(&columns[i])))
	}

	top := margin + longest*3/4 + cellSize/2 // Names stand at 45 degrees.

	for i := range columns {
		s.Heads = append(s.Heads, figure{
			X: left + i*cellSize + cellSize/2 + 4, Y: top - 6, Text: headName(&columns[i]),
			Full: printable.Some(columnNames(columns[i].Namespaces), 1<<20),
		})
	}

	for r := range rows {
		y := top + r*cellSize
		s.Rows = append(s.Rows, figure{Y: y + cellSize - 8, Text: rowName(&rows[r]), Full: wideWords(m, &rows[r])})

		for c := range columns {
			mark := overview.MarkOf(rows[r].States[c])
			x := left + c*cellSize
			s.Cells = append(s.Cells, figure{
				X: x, Y: y, TextX: x + cellSize/2, TextY: y + cellSize - 8, Text: mark.Sign, Class: class(mark.State),
			})
		}
	}

	s.finish(left, top, len(columns), len(rows), longest)

	if len(m.ClusterWide) > 0 {
		s.explain(class(overview.Partial), "!", wideLegend)
	}

	return s.draw(w)
}

// draw writes what was measured.
func (s *sheet) draw(w io.Writer) error {
	d := &document{}
	d.write(svgHead, s.Width, s.Height, s.Width, s.Height)
	d.file(svgStyle)
	d.write(`<rect class="back" width="%s" height="%s"/>`+"\n", s.Width, s.Height)

	for _, f := range s.Heads {
		d.write(`<text transform="translate(%s %s) rotate(-45)">%s<title>%s</title></text>`+"\n", f.X, f.Y, f.Text, f.Full)
	}

	for _, f := range s.Rows {
		d.write(`<text x="%s" y="%s">%s`, margin, f.Y, f.Text)

		if f.Full != "" {
			d.write(`<title>%s</title>`, f.Full)
		}

		d.write("</text>\n")
	}

	for _, f := range s.Cells {
		d.write(`<rect class="cell %s" x="%s" y="%s" width="26" height="26"/>`, f.Class, f.X, f.Y)
		d.write(`<text class="sign %s" x="%s" y="%s">%s</text>`+"\n", f.Class, f.TextX, f.TextY, f.Text)
	}

	for _, f := range s.Legend {
		d.write(`<text class="sign %s" x="%s" y="%s">%s</text>`, f.Class, f.X, f.Y, f.Text)
		d.write(`<text x="%s" y="%s">%s</text>`+"\n", f.TextX, f.Y, f.Full)
	}

	d.write("</svg>\n")

	return d.flush(w)
}

// finish adds the legend, and measures the sheet.
func (s *sheet) finish(left, top, columns, rows, longest int) {
	s.Height = top + rows*cellSize + 2*margin
	s.Width = left + columns*cellSize + longest*3/4 + margin

	for _, m := range append(overview.Marks(), overview.MarkOf("")) {
		s.explain(class(m.State), m.Sign, m.Word)
	}
}

// explain adds a line to the legend.
func (s *sheet) explain(class, sign, words string) {
	s.Legend = append(s.Legend, figure{X: margin + 6, Y: s.Height, TextX: margin + 22, Text: sign, Full: words, Class: class})
	s.Width = max(s.Width, margin+22+width(words)+margin)
	s.Height += 20
}

// wideLegend explains the mark.
const wideLegend = ClusterWideMark + ": holds something in all namespaces, whatever its cells say"

// wideWords say what the operators of a row hold in all namespaces.
func wideWords(m *overview.Matrix, r *overview.Row) string {
	var out []string

	for i := range m.ClusterWide {
		if slices.Contains(r.Operators, m.ClusterWide[i].Operator) {
			out = append(out, printable.Text(m.ClusterWide[i].String()))
		}
	}

	return printable.Some(out, maxNames)
}

func class(s overview.State) string {
	if s == "" {
		return "none"
	}

	return string(s)
}

func width(text string) int { return int(float64(utf8.RuneCountInString(text)) * letter) }

func rowName(r *overview.Row) string { return Marked(printable.Text(r.Name()), r.ClusterWide) }

func headName(c *overview.Column) string {
	name := []rune(printable.Some(columnNames(c.Namespaces), maxNames))
	if len(name) > headLength {
		return string(name[:headLength-1]) + "…"
	}

	return string(name)
}
