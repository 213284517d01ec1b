// Package output is how commands print: for users in words and tables, and for programs as JSON and YAML.
package output

import (
	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Streams are where a command writes. They escape everything that is not made safe to read.
type Streams struct {
	Out, ErrOut *terminal.Writer
}

// StreamsOf returns the streams of a command.
func StreamsOf(c *cobra.Command) Streams {
	return Streams{Out: terminal.NewWriter(c.OutOrStdout()), ErrOut: terminal.NewWriter(c.ErrOrStderr())}
}
