package embedded

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// stopTime is how long a process may take to end when it is asked to.
const stopTime = time.Minute

// withLifeline runs a program until it ends, or until standard input does.
const withLifeline = `exec 3<&0
"$@" </dev/null 3<&- & program=$!
{ cat <&3; kill "$program"; } >/dev/null 2>&1 &
wait "$program"`

// Process is a program that runs no longer than this one. The end of its standard input tells it to end; the kernel closes that
// even if this program is killed.
type Process struct {
	name     string
	command  *exec.Cmd
	lifeline io.Closer
	ended    chan struct{}
	err      error
}

// WithLifeline is a command for a program that does not heed its standard input: it is asked to end when that does.
func WithLifeline(program string, arguments ...string) *exec.Cmd {
	//nolint:noctx,gosec // It ends by its lifeline, after which it may finish what it does; it runs what this repository built.
	return exec.Command("/bin/sh", append([]string{"-c", withLifeline, "sh", program}, arguments...)...)
}

// StartProcess starts a program in a session of its own, out of reach of Ctrl-C: that is for this program, which stops the
// others in order. died is called when the program ends.
func StartProcess(name string, command *exec.Cmd, died func(error)) (*Process, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	lifeline, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}

	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}

	p := &Process{name: name, command: command, lifeline: lifeline, ended: make(chan struct{})}

	go func() {
		p.err = command.Wait()
		close(p.ended)
		died(fmt.Errorf("%s ended by itself: %w", name, orUnexpected(p.err)))
	}()

	return p, nil
}

func orUnexpected(err error) error {
	if err == nil {
		return errors.New("without an error")
	}

	return err
}

// Stop asks the program to end, waits, and kills it if that takes too long.
func (p *Process) Stop() error {
	// A process that has ended closed it already.
	_ = p.lifeline.Close()

	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTime):
	}

	err := p.Signal(syscall.SIGKILL)
	<-p.ended

	return errors.Join(fmt.Errorf("%s did not stop within %s and was killed", p.name, stopTime), err)
}

// Signal sends a signal to the session's group: the program and what it started.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := syscall.Kill(-p.command.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.name, err)
	}

	return nil
}
