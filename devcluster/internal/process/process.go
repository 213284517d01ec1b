// Package process runs one component of the cluster as a child process that
// cannot outlive this one.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/lifeline"
)

// Spec says how to start a process.
type Spec struct {
	Name    string
	Program string
	Args    []string
	Env     []string
	Folder  string
	Log     string
}

// Process is a running or ended child process.
type Process struct {
	Spec

	Started time.Time

	cmd      *exec.Cmd
	logStart int64
	done     chan struct{}
	err      error
}

// lifelineFD is the descriptor number of the first extra file of a child.
const lifelineFD = 3

// Start starts a process. The reading end of the lifeline is handed down to
// it. The log is appended to, so that a restart does not hide what led to it.
func Start(spec Spec, reader *os.File) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	// The child has its own descriptor of the log.
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}

	cmd := exec.Command(spec.Program, spec.Args...) //nolint:gosec,noctx // our own programs; Stop ends them, in order
	cmd.Env = append([]string{fmt.Sprintf("%s=%d", lifeline.EnvFD, lifelineFD)}, spec.Env...)
	cmd.Dir = spec.Folder
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{reader}
	// A group of its own: Ctrl-C in a terminal reaches only the supervisor,
	// which then stops the components in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	p := &Process{Spec: spec, Started: time.Now(), cmd: cmd, logStart: info.Size(), done: make(chan struct{})}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	// Whatever it started itself goes with it. Done right away, while the
	// number of the group cannot have been given to somebody else.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	close(p.done)
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended says how the process ended, in words. It waits for the end.
func (p *Process) Ended() string {
	<-p.done
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return "exit code 0"
	case errors.As(p.err, &exit) && exit.ExitCode() >= 0:
		return fmt.Sprintf("exit code %d", exit.ExitCode())
	default:
		return p.err.Error()
	}
}

// Signal sends a signal to the process and what it started.
func (p *Process) Signal(signal syscall.Signal) {
	select {
	case <-p.done: // the number of the group may belong to somebody else
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, signal)
	}
}

// Stop asks the process to end, kills it if it has not within the grace
// period or before the context ends, and returns when it is gone. Without a
// grace period it is killed right away.
func (p *Process) Stop(ctx context.Context, grace time.Duration) {
	if grace > 0 {
		p.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
			return
		case <-ctx.Done():
		case <-time.After(grace):
		}
	}
	p.Signal(syscall.SIGKILL)
	<-p.done
}
