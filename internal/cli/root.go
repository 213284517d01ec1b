// Package cli is the command line. A command is a value with its options and its streams; only main exits.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/narrow"
	"github.com/ambit-k8s/ambit/internal/cli/whocan"
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

// errMissing is the answer of a command that permissions are missing. It has printed which.
var errMissing = errors.New("permissions are missing")

// errUnknown is the answer of a command that it cannot tell. It has printed why.
var errUnknown = errors.New("it is unknown")

// usageError is an error in how a command was called.
type usageError struct{ error }

// usage says that an error is in how a command was called.
func usage(err error) error { return usageError{err} }

// usagef makes an error in how a command was called.
func usagef(format string, values ...any) error { return usageError{fmt.Errorf(format, values...)} }

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
	case errors.Is(err, errMissing) || errors.Is(err, narrow.ErrMore):
		return ExitMissing
	case errors.Is(err, errUnknown):
		return ExitFailed
	}

	// Where this cannot be written, nothing can be.
	_ = sayTo(errOut, "error: %v", err)

	if _, usage := errors.AsType[usageError](err); usage {
		return ExitUsage
	}

	if _, usage := errors.AsType[narrow.UsageError](err); usage {
		return ExitUsage
	}

	if _, usage := errors.AsType[whocan.UsageError](err); usage {
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
may use its API there. It does so from one declaration and keeps the cluster true to it.`,
		Version:       Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
	}
	root.SetOut(terminal.NewWriter(out))
	root.SetErr(terminal.NewWriter(errOut))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, c.CommandPath())
	})
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	root.AddCommand(
		newManager(), newAuthorize(), newRevoke(), newPreflight(), newPlan(), newWhy(), newTree(), newMatrix(), newOperators(),
		newImport(), newCatalog(),
		narrow.New(Version), whocan.New(), newServe(),
	)

	return root
}

// commandOptions are those of a command: it completes them from the command line and the kubeconfig, says what is wrong with them
// before anything is read, and runs.
type commandOptions interface {
	complete(c *cobra.Command, args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// inSteps runs a command by its options.
func inSteps(o commandOptions) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := o.complete(c, args); err != nil {
			return err
		}

		if err := o.Validate(); err != nil {
			return usage(err)
		}

		return o.Run(c.Context())
	}
}

// noArguments refuses arguments.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s does not know %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())
	}

	return nil
}
