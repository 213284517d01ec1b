package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestDraw(t *testing.T) {
	d, err := readDashboard("../../charts/ambit/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}

	from := time.Unix(1_700_000_000, 0)
	r := &recording{from: from, to: from.Add(time.Minute)}

	for i := range d.Panels {
		p := &d.Panels[i]
		if p.Type != "stat" && p.Type != "timeseries" {
			t.Errorf("panel %q is a %s, which is not drawn", p.Title, p.Type)
		}

		for j := range p.Targets {
			if q := p.Targets[j].query(); strings.Contains(q, "$") {
				t.Errorf("panel %q has a variable that nobody fills in: %s", p.Title, q)
			}
		}

		r.panels = append(r.panels, []line{{"<b>&", []point{{from.Add(time.Second), 1}, {from.Add(10 * time.Second), 7}}}})
	}

	var out bytes.Buffer
	if err := draw(&out, d, r); err != nil {
		t.Fatal(err)
	}

	// A gap of nine seconds makes two lines of each; a number is the last point.
	if charts := strings.Count(out.String(), `class="title"`) - strings.Count(out.String(), `class="number"`); charts == 0 ||
		strings.Count(out.String(), "<polyline") != 2*charts || strings.Count(out.String(), ">7</text>") < len(d.Panels)-charts {
		t.Errorf("the picture is not what was recorded:\n%s", &out)
	}

	for decoder := xml.NewDecoder(&out); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("a name broke the picture: %v", err)
		}
	}
}

func TestGridStep(t *testing.T) {
	for _, tc := range []struct{ highest, want float64 }{
		{0, 1}, {1, 0.2}, {4, 1}, {5, 1}, {6, 2}, {29, 10}, {120, 50}, {0.25, 0.05},
	} {
		lines := []line{{points: []point{{value: tc.highest}}}}
		if got := gridStep(lines); got < tc.want*0.99 || got > tc.want*1.01 {
			t.Errorf("up to %v the grid has steps of %v, want %v", tc.highest, got, tc.want)
		}
	}
}

func TestLegend(t *testing.T) {
	question := target{LegendFormat: "{{namespace}}/{{scope}} of {{unknown}}"}
	if got := question.legend(map[string]string{"namespace": "a", "scope": "b"}); got != "a/b of {{unknown}}" {
		t.Errorf("got %q", got)
	}
}

func TestPointsLeaveOutWhatIsNoNumber(t *testing.T) {
	got := points([][2]any{{1.5, "NaN"}, {2.0, "3"}, {"x", "4"}, {3.0, "+Inf"}})
	if len(got) != 1 || got[0].value != 3 || !got[0].at.Equal(time.Unix(2, 0)) {
		t.Errorf("got %v", got)
	}
}
