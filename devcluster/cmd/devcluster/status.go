package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/devcluster/internal/control"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

func newStatus() *cobra.Command {
	var dir, output string
	command := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "Say whether a cluster is running, and if not, why",
		Long: `Say whether a cluster is running, and if not, why.

The exit code is 0 when it is running and 1 when it is not.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q; choose text or json", output)
			}
			state, err := status(command.Context(), dir)
			if err != nil {
				return failure{err}
			}
			if err := show(os.Stdout, state, output); err != nil {
				return failure{err}
			}
			if state.Phase != workdir.Running {
				return failure{errors.New("no cluster is running in " + dir)}
			}
			return nil
		},
	}
	dirFlag(command, &dir)
	command.Flags().StringVarP(&output, "output", "o", "text", "how to write it: text or json")
	return command
}

// ending is how long a supervisor may take to end once it answers no more.
const ending = 2 * time.Second

func status(ctx context.Context, path string) (workdir.State, error) {
	dir, err := workdir.Existing(path)
	if errors.Is(err, fs.ErrNotExist) {
		return workdir.State{Phase: workdir.Stopped, Reason: "there is no such folder"}, nil
	}
	if err != nil {
		return workdir.State{}, fmt.Errorf("cannot use --dir: %w", err)
	}
	locked, err := dir.Locked()
	if err != nil {
		return workdir.State{}, fmt.Errorf("asking whether a cluster is running: %w", err)
	}
	if locked {
		state, err := control.Status(ctx, dir)
		if err == nil {
			return state, nil
		}
		// A supervisor that ends stops answering before it lets go of the folder.
		lock, lockErr := dir.WaitUnlocked(ending)
		if lockErr != nil {
			return workdir.State{}, fmt.Errorf("asking the cluster how it is: %w; its log is %s", err, dir.OwnLog())
		}
		if err := lock.Release(); err != nil {
			return workdir.State{}, fmt.Errorf("asking whether a cluster is running: %w", err)
		}
	}
	state, err := dir.LoadState()
	if err != nil {
		return workdir.State{}, fmt.Errorf("finding out how the cluster ended: %w", err)
	}
	if state.Phase != workdir.Stopped && state.Phase != workdir.Failed {
		state.Reason = fmt.Sprintf("its supervisor was killed while the cluster was %s", state.Phase)
		state.Phase = workdir.Failed
	}
	return state, nil
}

func show(out io.Writer, state workdir.State, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(state); err != nil {
			return fmt.Errorf("writing the status: %w", err)
		}
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(format string, args ...any) { fmt.Fprintf(table, format+"\n", args...) }
	row("status:\t%s", state.Phase)
	if state.Reason != "" {
		row("reason:\t%s", state.Reason)
	}
	if !state.Since.IsZero() {
		row("since:\t%s", state.Since.Format(time.RFC3339))
	}
	if state.Phase == workdir.Running {
		row("server:\t%s", state.Server)
		row("kubeconfig:\t%s", state.Kubeconfig)
		row("supervisor:\tprocess %d\n", state.PID)
		row("COMPONENT\tPROCESS\tUPTIME\tRESTARTS\tLOG")
		for _, c := range state.Components {
			row("%s\t%d\t%s\t%d\t%s", c.Name, c.PID, time.Since(c.Since).Round(time.Second), c.Restarts, c.Log)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}
