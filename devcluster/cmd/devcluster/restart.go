package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/devcluster/internal/control"
	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

func newRestart() *cobra.Command {
	var dir, signal string
	command := &cobra.Command{
		Use:   "restart --dir DIR COMPONENT",
		Short: "Restart one component on its old port and return when it is ready again",
		Long: "Restart one component on its old port and return when it is ready again.\n\nThe components are " +
			strings.Join(controlplane.Components(), ", ") + ".",
		Example: "  devcluster restart --dir /tmp/demo --signal KILL kube-apiserver",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(controlplane.Components(), args[0]) {
				return fmt.Errorf("name one component: %s", strings.Join(controlplane.Components(), ", "))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			name := strings.TrimPrefix(strings.ToUpper(signal), "SIG")
			if name != "TERM" && name != "KILL" {
				return fmt.Errorf("--signal is %q; choose TERM for an orderly end or KILL for an abrupt one", signal)
			}
			if err := restart(command.Context(), dir, args[0], name == "KILL"); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	dirFlag(command, &dir)
	command.Flags().StringVar(&signal, "signal", "TERM", "how to end the component: TERM or KILL")
	return command
}

func restart(ctx context.Context, path, component string, kill bool) error {
	started := time.Now()
	dir, err := running(path)
	if err != nil {
		return err
	}
	state, err := control.Restart(ctx, dir, component, kill)
	if err != nil {
		return fmt.Errorf("restarting %s: %w", component, err)
	}
	for _, c := range state.Components {
		if c.Name == component {
			fmt.Printf("%s is ready again after %.1fs (process %d).\n", component, time.Since(started).Seconds(), c.PID)
		}
	}
	return nil
}

// running returns the folder of a cluster that must be running.
func running(path string) (workdir.Dir, error) {
	dir, err := workdir.Existing(path)
	if err != nil {
		return workdir.Dir{}, fmt.Errorf("cannot use --dir: %w", err)
	}
	locked, err := dir.Locked()
	if err != nil {
		return workdir.Dir{}, fmt.Errorf("asking whether a cluster is running: %w", err)
	}
	if !locked {
		return workdir.Dir{}, errors.New("no cluster is running in " + dir.Root() +
			"; start one with: devcluster up --dir " + dir.Root())
	}
	return dir, nil
}
