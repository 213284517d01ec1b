// Command chartvalues writes the README of the Helm chart: what stands before its first table, and a table of the values with the
// comments that values.yaml gives them, so that the two cannot disagree.
//
//	chartvalues CHART
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chartvalues:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: chartvalues CHART")
	}

	values, err := os.ReadFile(filepath.Join(args[0], "values.yaml")) //nolint:gosec // Whoever runs it says which chart.
	if err != nil {
		return fmt.Errorf("reading the values: %w", err)
	}

	var text strings.Builder

	text.WriteString(head + "| Value | Default | Says |\n|---|---|---|\n")

	for _, v := range parse(string(values)) {
		fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", v.path, cell(v.preset), cell(v.says))
	}

	//nolint:gosec // Like everything else in the repository.
	if err := os.WriteFile(filepath.Join(args[0], "README.md"), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing the README: %w", err)
	}

	return nil
}

const head = `<!-- Generated from values.yaml by hack/generate.sh. -->
# Ambit

Decides where an operator watches, what it may do there, and who may use its API.

` + "```console" + `
$ helm install ambit oci://ghcr.io/ambit-k8s/charts/ambit -n ambit-system --create-namespace --set profile=delegated
$ helm test ambit -n ambit-system
` + "```" + `

What the profiles may do, and how to upgrade and remove: https://github.com/ambit-k8s/ambit/blob/main/docs/install.md.

Without values, the chart renders what ` + "`kubectl apply -k config/PROFILE`" + ` installs. The optional objects are off;
those that need other people's definitions say so. Wrong values are refused.

## Values

`

// value is a line of values.yaml that has a value.
type value struct{ path, preset, says string }

// parse reads the only form of YAML that values.yaml uses: nested names, a value on the line of its name, and comments before. A
// comment describes the next line only.
func parse(text string) []value {
	var (
		values  []value
		parents []string
		says    []string
	)

	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if comment, is := strings.CutPrefix(bare, "#"); is {
			says = append(says, strings.TrimSpace(comment))

			continue
		}

		name, preset, is := strings.Cut(bare, ":")
		if !is {
			says = nil

			continue
		}

		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		parents = append(parents[:depth], name)

		if preset = strings.TrimSpace(preset); preset != "" {
			values = append(values, value{strings.Join(parents, "."), preset, strings.Join(says, " ")})
		}

		says = nil
	}

	return values
}

// cell is a text as it may stand in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
