// Package command is what all commands have in common: their steps, how they reach the cluster with the rights of the caller, and
// the errors that are answers.
package command

import (
	"context"

	"github.com/spf13/cobra"
)

// Options are the options of a command: Complete fills them in from the command line and the kubeconfig, Validate says what is
// wrong with them before anything is read, and Run runs the command.
type Options interface {
	Complete(c *cobra.Command, args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// InSteps runs a command by its options.
func InSteps(o Options) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := o.Complete(c, args); err != nil {
			return err
		}

		if err := o.Validate(); err != nil {
			return Usage(err)
		}

		return o.Run(c.Context())
	}
}

// NoArguments refuses arguments.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s does not know %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())
	}

	return nil
}
