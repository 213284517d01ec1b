package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

func newUp() *cobra.Command {
	var c cluster
	command := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start a cluster in the background and return when it is ready",
		Example: `  devcluster up --dir /tmp/demo
  export KUBECONFIG=/tmp/demo/kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			if err := up(command.Context(), c); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	c.addFlags(command)
	return command
}

func up(ctx context.Context, c cluster) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	started := time.Now()
	dir, err := workdir.Open(c.dir)
	if err != nil {
		return fmt.Errorf("cannot use --dir: %w", err)
	}
	child, err := startBackground(c, dir)
	if err != nil {
		return err
	}
	// An interrupted up takes the cluster with it: see stopUnlessTold.
	defer context.AfterFunc(ctx, func() { _ = child.stdin.Close() })()

	line, err := child.firstLine()
	if err != nil {
		_ = child.cmd.Wait()
		return fmt.Errorf("the supervisor ended without a word; its log is %s", dir.OwnLog())
	}
	if message, failed := strings.CutPrefix(line, sayError); failed {
		_ = child.cmd.Wait()
		return errors.New(message)
	}
	if _, err := io.WriteString(child.stdin, sayStay); err != nil {
		_ = child.cmd.Wait()
		return errors.New("interrupted; the cluster is stopped")
	}
	if err := child.stdin.Close(); err != nil {
		return fmt.Errorf("leaving the cluster alone: %w", err)
	}
	fmt.Printf("The cluster is ready after %.1fs. Use it with:\n\n  export KUBECONFIG=%s\n\n",
		time.Since(started).Seconds(), dir.Kubeconfig())
	fmt.Printf("Stop it with: devcluster down --dir %s\n", dir.Root())
	return nil
}

// background is the process that up leaves behind.
type background struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
}

func startBackground(c cluster, dir workdir.Dir) (*background, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	// What the process says in distress ends up in the log; it must not keep
	// the terminal or the pipe of whoever called us.
	log, err := os.OpenFile(dir.OwnLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	args := append([]string{"run", "--background"}, c.args()...)
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // ourselves, to outlive this process
	cmd.Stderr = log
	// The root, so that no file system is kept from being unmounted.
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("preparing the supervisor: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("preparing the supervisor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	return &background{cmd: cmd, stdin: stdin, stdout: stdout}, nil
}

func (b *background) firstLine() (string, error) {
	line, err := bufio.NewReader(b.stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("reading what the supervisor says: %w", err)
	}
	return strings.TrimSpace(line), nil
}
