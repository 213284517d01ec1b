// Package cli is the command line. A command is a value with its options and its streams; only main exits.
package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/authorize"
	"github.com/ambit-k8s/ambit/internal/cli/catalog"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/imports"
	"github.com/ambit-k8s/ambit/internal/cli/manager"
	"github.com/ambit-k8s/ambit/internal/cli/narrow"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/cli/preflight"
	"github.com/ambit-k8s/ambit/internal/cli/serve"
	"github.com/ambit-k8s/ambit/internal/cli/served"
	"github.com/ambit-k8s/ambit/internal/cli/whocan"
	"github.com/ambit-k8s/ambit/internal/cli/why"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Exit codes of every command.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitMissing is the answer that permissions are missing, or that something would be refused.
	ExitMissing = 3
)

// Version is set through the linker.
var Version = "v0.0.0-dev" //nolint:gochecknoglobals // The linker can set nothing else.

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, args []string, toOut, toErr io.Writer) int {
	out, errOut := terminal.NewWriter(toOut), terminal.NewWriter(toErr)
	defer out.Flush()
	defer errOut.Flush()

	root := NewRoot(out, errOut)
	root.SetArgs(args)

	err := root.ExecuteContext(ctx)

	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, command.ErrMissing) || errors.Is(err, narrow.ErrMore):
		return ExitMissing
	case errors.Is(err, command.ErrUnknown):
		return ExitFailed
	}

	// Where this cannot be written, nothing can be.
	_ = output.Say(errOut, "error: %v", command.Advised(err))

	if _, usage := errors.AsType[command.UsageError](err); usage {
		return ExitUsage
	}

	return ExitFailed
}

// NewRoot returns the command line, which writes to out and errOut. What cobra writes itself goes there, too.
func NewRoot(out, errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "ambit",
		Short: "Decides where an operator works, what it may do there, and who may use it",
		Long: `Ambit decides an operator's scope: where it watches, what it may do there, and who
may use its API there. It derives the scope from one declaration, and keeps the cluster in line with it.`,
		Version:       Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          command.NoArguments,
	}
	root.SetOut(terminal.NewWriter(out))
	root.SetErr(terminal.NewWriter(errOut))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return command.Usagef("%w; see %s --help", err, c.CommandPath())
	})
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	root.AddCommand(
		manager.Command(Version), authorize.Command(), authorize.RevokeCommand(), preflight.Command(), plan.Command(), why.Command(),
		served.TreeCommand(), served.MatrixCommand(), served.OperatorsCommand(), imports.Command(), catalog.Command(),
		narrow.Command(Version), whocan.Command(), serve.Command(),
	)
	refuseUnknown(root)

	return root
}

// refuseUnknown has cobra's own commands refuse what they do not know. By itself, cobra prints some help and ends as if all were
// well.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()

	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				of, unknown, err := root.Find(args)
				if err != nil {
					return command.Usage(err)
				}

				if len(unknown) > 0 {
					return command.Usagef("%s has no command %q; see %s --help", of.CommandPath(), unknown[0], of.CommandPath())
				}

				return nil
			}
		case "completion":
			// Arguments are looked at only of what runs.
			c.Args, c.RunE = command.NoArguments, func(c *cobra.Command, _ []string) error { return c.Help() }

			for _, shell := range c.Commands() {
				shell.Args = command.NoArguments
			}
		}
	}
}
