package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/common/model"
)

// dashboard is the part of Grafana's format that is drawn.
type dashboard struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

// panel is a number or a chart.
type panel struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []target `json:"targets"`
}

// target is a query of a panel.
type target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

var errNoPanels = errors.New("it has no panels")

func readDashboard(path string) (*dashboard, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the dashboard: %w", err)
	}

	d := &dashboard{}
	if err := json.Unmarshal(content, d); err != nil {
		return nil, fmt.Errorf("reading the dashboard %s: %w", path, err)
	}

	if len(d.Panels) == 0 {
		return nil, fmt.Errorf("reading the dashboard %s: %w", path, errNoPanels)
	}

	return d, nil
}

// query is the query with the variables that Grafana fills in: all namespaces, and a rate over more than four scrapes.
func (t *target) query() string {
	return strings.NewReplacer("$namespace", ".*", "$__rate_interval", rateInterval.String()).Replace(t.Expr)
}

// legend is the name of one line of the result.
func (t *target) legend(labels model.Metric) string {
	pairs := make([]string, 0, 2*len(labels))
	for name, value := range labels {
		pairs = append(pairs, "{{"+string(name)+"}}", string(value))
	}

	return strings.NewReplacer(pairs...).Replace(t.LegendFormat)
}
