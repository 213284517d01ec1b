package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/devcluster/internal/supervisor"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// The words by which up and the process it leaves behind talk: the process
// says how its start went, and up then says that it may stay.
const (
	sayReady = "ready: KUBECONFIG="
	sayError = "error: "
	sayStay  = "stay"
)

func newRun() *cobra.Command {
	var c cluster
	var untilEOF, background bool
	command := &cobra.Command{
		Use:   "run --dir DIR",
		Short: "Run a cluster in the foreground until Ctrl-C",
		Long: `Run a cluster in the foreground until Ctrl-C.

When the cluster is ready, one line says so on standard output:

  ready: KUBECONFIG=DIR/kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			err := run(command.Context(), c, untilEOF, background)
			if err == nil {
				return nil
			}
			if background {
				// Said to up, which tells the user; the log has it already.
				fmt.Println(sayError + oneLine(err))
				os.Exit(exitFailure)
			}
			return failure{err}
		},
	}
	c.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&untilEOF, "until-stdin-closes", false,
		"stop also when standard input ends, as it does when the process that wrote to it is gone")
	flags.BoolVar(&background, "background", false, "run on behalf of up")
	if err := flags.MarkHidden("background"); err != nil {
		panic(err) // the flag was added one line above
	}
	return command
}

func run(ctx context.Context, c cluster, untilEOF, background bool) error {
	// A reader of our output that goes away must not take the cluster with it.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// From the first signal on the next one ends this process at once, and
	// the components with it.
	context.AfterFunc(ctx, stop)
	defer stop()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch {
	case background:
		go stopUnlessTold(cancel)
	case untilEOF:
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}

	dir, err := workdir.Open(c.dir)
	if err != nil {
		return fmt.Errorf("cannot use --dir: %w", err)
	}
	err = supervisor.Run(ctx, supervisor.Options{
		Dir:          dir,
		Programs:     c.programs,
		Nodes:        c.nodes,
		Controllers:  c.controllers,
		AuditLog:     c.auditLog,
		StartTimeout: c.startTimeout,
		Ready:        func() { fmt.Println(sayReady + dir.Kubeconfig()) },
	})
	if err != nil {
		return err
	}
	return nil
}

// stopUnlessTold stops the cluster if up ends without having said that the
// cluster may stay, as when somebody interrupts it.
func stopUnlessTold(cancel context.CancelFunc) {
	said, err := io.ReadAll(os.Stdin)
	if err != nil || !bytes.Contains(said, []byte(sayStay)) {
		cancel()
	}
}
