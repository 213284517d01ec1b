package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/terminal"
)

// IOStreams are where a command writes. They take nothing that was not made safe to read.
type IOStreams struct {
	Out, ErrOut *terminal.Writer
}

func streamsOf(c *cobra.Command) IOStreams {
	return IOStreams{Out: terminal.NewWriter(c.OutOrStdout()), ErrOut: terminal.NewWriter(c.ErrOrStderr())}
}

// The values of --output.
const (
	formTable = "table"
	formJSON  = "json"
	formYAML  = "yaml"
	formHTML  = "html"
	formSVG   = "svg"
)

// bindOutput adds -o, with the first of the forms as its default. Every command has at least table, json and yaml, so that
// nobody has to know which command they are at.
func bindOutput(c *cobra.Command, output *string, forms []string, what string) {
	c.Flags().StringVarP(output, "output", "o", forms[0], oneOf(forms)+"; "+what)
	register(c, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return forms, cobra.ShellCompDirectiveNoFileComp
	})
}

func validOutput(output string, forms []string) error {
	if !slices.Contains(forms, output) {
		return fmt.Errorf("--output is %q; give %s", output, oneOf(forms))
	}

	return nil
}

// usualForms are those of every command.
func usualForms() []string { return []string{formTable, formJSON, formYAML} }

func oneOf(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
