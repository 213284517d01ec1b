package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/devcluster/internal/control"
	"github.com/ambit-k8s/ambit/devcluster/internal/process"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// stopTimeout is above all the bounds within which a supervisor stops.
const stopTimeout = 30 * time.Second

func newDown() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop a cluster, wait until all of it is gone, and remove its data",
		Long: `Stop a cluster, wait until all of it is gone, and remove its data.

The logs stay, in DIR/logs. Stopping a cluster that does not run is no error.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := down(command.Context(), dir); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	dirFlag(command, &dir)
	return command
}

func down(ctx context.Context, path string) error {
	started := time.Now()
	dir, err := workdir.Existing(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("Nothing to stop: there is no folder %s.\n", path)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot use --dir: %w", err)
	}
	running, err := dir.Locked()
	if err != nil {
		return fmt.Errorf("asking whether a cluster is running: %w", err)
	}
	if running {
		if err := stop(ctx, dir); err != nil {
			return err
		}
	}
	lock, err := dir.WaitUnlocked(stopTimeout)
	if err != nil {
		return fmt.Errorf("the cluster did not stop within %s: %w; its log is %s", stopTimeout, err, dir.OwnLog())
	}
	defer func() { _ = lock.Release() }()
	// Only what a killed supervisor left behind is there to be removed.
	if err := dir.Clean(); err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	if !running {
		fmt.Printf("Nothing to stop: no cluster is running in %s. Logs are in %s\n", dir.Root(), dir.Logs())
		return nil
	}
	fmt.Printf("The cluster is stopped after %.1fs and its data is removed. Logs are in %s\n",
		time.Since(started).Seconds(), dir.Logs())
	return nil
}

// stop asks the supervisor to stop, and waits for its process.
func stop(ctx context.Context, dir workdir.Dir) error {
	state, err := control.Stop(ctx, dir)
	if err != nil {
		// It may have stopped by itself in this moment.
		if locked, lockErr := dir.Locked(); lockErr == nil && !locked {
			return nil
		}
		return fmt.Errorf("asking the cluster to stop: %w; its log is %s", err, dir.OwnLog())
	}
	deadline := time.Now().Add(stopTimeout)
	for !gone(dir, state.PID) && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// gone tells whether a supervisor has ended, be it that nobody has collected
// its exit code yet. It releases the folder a moment before it ends, so that
// says enough only where there is no /proc.
func gone(dir workdir.Dir, pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	zombie, err := process.IsZombie(pid)
	if err != nil {
		locked, err := dir.Locked()
		return err == nil && !locked
	}
	return zombie
}
