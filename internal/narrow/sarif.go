package narrow

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// Sarif is a report for pipelines, as OASIS has it (docs.oasis-open.org/sarif/sarif/v2.1.0).
type Sarif struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type (
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// The rules of the report.
const (
	ruleClusterWide = "cluster-wide-right"
	ruleNamespaced  = "namespaced-right"
)

// SarifOf returns the report about what a new version asks for beyond an old one.
func SarifOf(all []More, version string) *Sarif {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{
		Name: "ambit", Version: version, InformationURI: "https://github.com/ambit-k8s/ambit",
		Rules: []sarifRule{
			{ruleClusterWide, sarifText{"The new version asks for a right in the whole cluster that the old one did not have"}},
			{ruleNamespaced, sarifText{"The new version asks for a right in a namespace that the old one did not have"}},
		},
	}

	for i := range all {
		m := &all[i]
		r := sarifResult{RuleID: ruleNamespaced, Level: "warning", Message: sarifText{m.String()}, Locations: make([]sarifLocation, 1)}

		if m.Namespace == "" && len(m.Places) == 0 {
			r.RuleID = ruleClusterWide
		}

		if m.Sensitive() {
			r.Level = "error"
		}

		at := &r.Locations[0].Physical
		at.Artifact.URI, at.Region.StartLine = uriOf(m.Source), max(1, m.Line)
		run.Results = append(run.Results, r)
	}

	return &Sarif{
		Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{run},
	}
}

// uriOf is a file as SARIF names it: a reference, in which a space or a percent sign has to be written in another way.
func uriOf(file string) string { return (&url.URL{Path: filepath.ToSlash(file)}).String() }

// String says it in one sentence.
func (m *More) String() string {
	head := fmt.Sprintf("%s may do more %s, by ", m.Who(), m.Where())

	if m.Unknown {
		role := printable.Text(m.Role)

		return fmt.Sprintf("%s%s: nobody knows the rules of %s, so it may give anything", head, cmp.Or(m.Binding, role), role)
	}

	what := slices.Concat(collect.Map(collect.Pointers(m.Rights), (*reach.Right).String), collect.Map(m.Says, printable.Text))

	return fmt.Sprintf("%s%s: %s", head, printable.Text(m.Role), strings.Join(what, "; "))
}
