package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
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

		r.panels = append(r.panels, []line{{"<b>&", []model.SamplePair{at(from.Add(time.Second), 1), at(from.Add(10*time.Second), 7)}}})
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
		lines := []line{{points: []model.SamplePair{{Value: model.SampleValue(tc.highest)}}}}
		if got := gridStep(lines); got < tc.want*0.99 || got > tc.want*1.01 {
			t.Errorf("up to %v the grid has steps of %v, want %v", tc.highest, got, tc.want)
		}
	}
}

func TestLegend(t *testing.T) {
	question := target{LegendFormat: "{{namespace}}/{{scope}} of {{unknown}}"}
	if got := question.legend(model.Metric{"namespace": "a", "scope": "b"}); got != "a/b of {{unknown}}" {
		t.Errorf("got %q", got)
	}
}

func at(time time.Time, value float64) model.SamplePair {
	return model.SamplePair{Timestamp: model.TimeFromUnixNano(time.UnixNano()), Value: model.SampleValue(value)}
}

func TestPointsLeaveOutWhatIsNoNumber(t *testing.T) {
	from := time.Unix(1, 0)

	got := points([]model.SamplePair{at(from, math.NaN()), at(time.Unix(2, 0), 3), at(from, math.Inf(1))})
	if len(got) != 1 || got[0].Value != 3 || !got[0].Timestamp.Time().Equal(time.Unix(2, 0)) {
		t.Errorf("got %v", got)
	}
}

// TestLines: what Prometheus answers becomes the lines of a panel.
func TestLines(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status": "success", "data": {"resultType": "matrix", "result": [
			{"metric": {"scope": "b"}, "values": [[1.5, "NaN"], [2, "3"]]}]}}`)
	}))
	defer server.Close()

	client, err := api.NewClient(api.Config{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}

	p := &prometheus{api: prometheusv1.NewAPI(client)}

	got, err := p.lines(t.Context(), &target{LegendFormat: "of {{scope}}"}, time.Unix(0, 0), time.Unix(3, 0))
	if err != nil || len(got) != 1 || got[0].name != "of b" || len(got[0].points) != 1 || got[0].points[0].Value != 3 {
		t.Errorf("got %v, %v", got, err)
	}
}
