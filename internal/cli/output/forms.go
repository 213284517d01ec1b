package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/command"
)

// The values of --output.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
	HTML  = "html"
	SVG   = "svg"
)

// Bind adds -o, with the first of the forms as its default. Every command that has -o takes at least table, json and yaml, so
// that nobody has to know which form which command takes.
func Bind(c *cobra.Command, output *string, forms []string, what string) {
	c.Flags().StringVarP(output, "output", "o", forms[0], oneOf(forms)+"; "+what)
	command.CompleteFlag(c, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return forms, cobra.ShellCompDirectiveNoFileComp
	})
}

// Valid says what is wrong with a value of --output.
func Valid(output string, forms []string) error {
	if !slices.Contains(forms, output) {
		return fmt.Errorf("--output is %q; give %s", output, oneOf(forms))
	}

	return nil
}

// Forms are the forms that every command has.
func Forms() []string { return []string{Table, JSON, YAML} }

func oneOf(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
