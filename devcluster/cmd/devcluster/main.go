// Command devcluster runs a real Kubernetes cluster for tests and demos: API
// server, controllers, scheduler and etcd as processes of this machine, with
// nodes and pods that are played rather than run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. Wrong usage differs from failure so that a script can tell
// a typing error from a cluster that does not start.
const (
	exitFailure = 1
	exitUsage   = 2
)

// failure marks errors of the work itself; all others are wrong usage,
// because they come from cobra.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func main() {
	err := newRoot().ExecuteContext(context.Background())
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "devcluster: %s\n", oneLine(err))
	if failed := new(failure); errors.As(err, failed) {
		os.Exit(exitFailure)
	}
	fmt.Fprintln(os.Stderr, "Run devcluster --help for how to use it.")
	os.Exit(exitUsage)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "Run a real Kubernetes cluster for tests and demos on this machine",
		Example: `  devcluster up --dir /tmp/demo
  kubectl --kubeconfig /tmp/demo/kubeconfig get nodes
  devcluster down --dir /tmp/demo`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("say what to do: up, run, down, restart, save, reset or status")
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newUp(), newRun(), newDown(), newRestart(), newSave(), newReset(), newStatus())
	return root
}

// dirFlag adds the flag that every verb has.
func dirFlag(command *cobra.Command, dir *string) {
	command.Flags().StringVar(dir, "dir", "", "folder of the cluster (required)")
	if err := command.MarkFlagRequired("dir"); err != nil {
		panic(err) // the flag was added one line above
	}
}

// programsFolder is where the Makefile puts the programs of Kubernetes: next
// to this one.
func programsFolder() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w; say where Kubernetes is with --k8s-dir", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	return filepath.Join(filepath.Dir(self), "k8s"), nil
}

// oneLine makes a message fit on one line, for logs and for scripts.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
