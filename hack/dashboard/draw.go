package main

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Grafana's grid has 24 columns, here of unit pixels, and rows of row pixels.
const (
	unit, row = 50, 40
	gap       = 8
	// In the panel of a chart, head is the space for the title, foot that for the time and the legend, side that for the values.
	head, foot, side = 34, 48, 64
	// letter is how wide a letter of the legend is.
	letter = 7
)

// palette can be told apart by people who do not see red and green, too: it is based on Okabe and Ito's.
var palette = []string{"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a7a00", "#444444"}

var sheet = template.Must(template.New("dashboard").Parse(`<svg xmlns="http://www.w3.org/2000/svg" ` +
	`viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" role="img" aria-label="{{.Title}}">
<style>
text { font: 12px system-ui, sans-serif; fill: #5d6b7a; } .title { font-size: 14px; font-weight: 600; fill: #1b2430; }
.number { font-size: 44px; fill: #0a7d33; text-anchor: middle; } .none { text-anchor: middle; }
.back { fill: #f3f5f8; } .panel { fill: #ffffff; stroke: #d8dee6; } .grid { stroke: #e6eaf0; }
.value { text-anchor: end; } .time { text-anchor: middle; }
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
</style>
<rect class="back" width="{{.Width}}" height="{{.Height}}"/>
{{range .Panels}}<g transform="translate({{.X}} {{.Y}})">
<rect class="panel" width="{{.Width}}" height="{{.Height}}" rx="3"/><text class="title" x="12" y="22">{{.Title}}</text>
{{if .Number}}<text class="number" x="{{.Middle}}" y="{{.NumberY}}">{{.Number}}</text>
{{end}}{{range .Marks}}{{if .Across}}<path class="grid" d="M{{.X}} {{.Y}}h{{.Across}}"/>` +
	`<text class="value" x="{{.TextX}}" y="{{.TextY}}">{{.Text}}</text>{{else}}` +
	`<text class="{{.Class}}" x="{{.TextX}}" y="{{.TextY}}">{{.Text}}</text>{{end}}
{{end}}{{range .Lines}}<polyline stroke="{{.Colour}}" points="{{.Points}}"/>
{{end}}{{range .Legend}}<rect x="{{.X}}" y="{{.Y}}" width="12" height="4" fill="{{.Colour}}"/>` +
	`<text x="{{.TextX}}" y="{{.TextY}}">{{.Text}}</text>
{{end}}</g>
{{end}}</svg>
`))

type drawing struct {
	Title         string
	Width, Height int
	Panels        []*box
}

// box is a panel that is drawn; its content is placed relative to its corner.
type box struct {
	X, Y, Width, Height   int
	Title, Number         string
	Middle, NumberY       int
	Marks, Lines, Legend  []figure
	left, top, wide, tall float64
	from                  time.Time
	perSecond, perUnit    float64
}

type figure struct {
	X, Y, TextX, TextY, Across  int
	Class, Text, Colour, Points string
}

// draw writes the dashboard with what was recorded.
func draw(w io.Writer, d *dashboard, r *recording) error {
	s := &drawing{Title: d.Title}

	for i := range d.Panels {
		b := place(&d.Panels[i])
		if d.Panels[i].Type == "stat" {
			b.number(r.panels[i])
		} else {
			b.chart(&d.Panels[i], r, r.panels[i])
		}

		s.Panels = append(s.Panels, b)
		s.Width, s.Height = max(s.Width, b.X+b.Width+gap), max(s.Height, b.Y+b.Height+gap)
	}

	if err := sheet.Execute(w, s); err != nil {
		return fmt.Errorf("drawing the dashboard: %w", err)
	}

	return nil
}

func place(p *panel) *box {
	return &box{
		Title: p.Title, X: gap + p.GridPos.X*unit, Y: gap + p.GridPos.Y*row,
		Width: p.GridPos.W*unit - gap, Height: p.GridPos.H*row - gap,
	}
}

// number shows the last value of a panel's only line.
func (b *box) number(lines []line) {
	b.Number, b.Middle, b.NumberY = "–", b.Width/2, b.Height/2+32
	if len(lines) == 1 && len(lines[0].points) > 0 {
		b.Number = format(float64(lines[0].points[len(lines[0].points)-1].Value), "")
	}
}

func (b *box) chart(p *panel, r *recording, lines []line) {
	b.left, b.top = side, head
	b.wide, b.tall = float64(b.Width-side-16), float64(b.Height-head-foot)
	b.from, b.perSecond = r.from, b.wide/r.to.Sub(r.from).Seconds()

	step := gridStep(lines)
	steps := max(1, math.Ceil(highest(lines)/step))
	b.perUnit = b.tall / (step * steps)

	for i := range int(steps) + 1 {
		y := b.y(float64(i) * step)
		b.Marks = append(b.Marks, figure{X: side, Y: y, Across: int(b.wide), TextX: side - 6, TextY: y + 4,
			Text: format(float64(i)*step, p.FieldConfig.Defaults.Unit)})
	}

	for at := time.Duration(0); at <= r.to.Sub(r.from); at += 30 * time.Second {
		b.Marks = append(b.Marks, figure{Class: "time", TextX: b.x(r.from.Add(at)), TextY: b.Height - foot + 16,
			Text: fmt.Sprintf("%d:%02d", int(at.Minutes()), int(at.Seconds())%60)})
	}

	if len(lines) == 0 {
		b.Marks = append(b.Marks, figure{Class: "none", TextX: b.Width / 2, TextY: b.Height / 2, Text: "No data"})
	}

	b.lines(lines)
}

func (b *box) lines(lines []line) {
	x := side

	for i, l := range lines {
		colour := palette[i%len(palette)]
		for _, points := range b.parts(l.points) {
			b.Lines = append(b.Lines, figure{Colour: colour, Points: points})
		}

		b.Legend = append(b.Legend, figure{X: x, Y: b.Height - 16, Colour: colour, TextX: x + 18, TextY: b.Height - 10, Text: l.name})
		x += 18 + letter*len(l.name) + 14
	}
}

// parts are the pieces of a line: there is a gap where Prometheus has no values.
func (b *box) parts(points []model.SamplePair) []string {
	var parts []string

	coords := make([]string, 0, len(points))

	for i, p := range points {
		if i > 0 && p.Timestamp.Sub(points[i-1].Timestamp) > 2*scrapeInterval {
			parts, coords = append(parts, strings.Join(coords, " ")), nil
		}

		coords = append(coords, fmt.Sprintf("%d,%d", b.x(p.Timestamp.Time()), b.y(float64(p.Value))))
	}

	return append(parts, strings.Join(coords, " "))
}

func (b *box) x(at time.Time) int {
	return int(math.Round(b.left + at.Sub(b.from).Seconds()*b.perSecond))
}
func (b *box) y(value float64) int { return int(math.Round(b.top + b.tall - value*b.perUnit)) }

func highest(lines []line) float64 {
	top := 0.0

	for _, l := range lines {
		for _, p := range l.points {
			top = max(top, float64(p.Value))
		}
	}

	return top
}

// gridStep is 1, 2 or 5 times a power of ten, of which at most five reach the highest value.
func gridStep(lines []line) float64 {
	top := highest(lines)
	if top == 0 {
		return 1
	}

	power := math.Pow(10, math.Floor(math.Log10(top/5)))
	steps := []float64{power, 2 * power, 5 * power, 10 * power}

	return steps[slices.IndexFunc(steps, func(step float64) bool { return step*5 >= top })]
}

// format writes a value as Grafana would with a unit.
func format(value float64, unit string) string {
	switch {
	case unit == "s" && value != 0 && value < 1:
		return strconv.FormatFloat(value*1000, 'g', 3, 64) + " ms"
	case unit == "s":
		return strconv.FormatFloat(value, 'g', 3, 64) + " s"
	case unit == "ops":
		return strconv.FormatFloat(value, 'g', 3, 64) + " /s"
	}

	return strconv.FormatFloat(value, 'g', 4, 64)
}
