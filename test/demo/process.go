package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// stopTime is how long a process may take to end when it is asked to.
const stopTime = 20 * time.Second

// withLifeline runs a program until it ends, or until standard input does.
const withLifeline = `exec 3<&0
"$@" </dev/null 3<&- & program=$!
{ cat <&3; kill "$program"; } >/dev/null 2>&1 &
wait "$program"`

// process is a program that runs as long as this one. It is told to end by the end of its standard input, which the kernel
// closes, too, should this program be killed.
type process struct {
	name     string
	command  *exec.Cmd
	lifeline io.Closer
	ended    chan struct{}
	err      error
}

// start starts a program in a session of its own, out of reach of Ctrl-C: that is for this program, which stops the others
// in order. died is called when the program ends.
func start(name string, command *exec.Cmd, died func(error)) (*process, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	lifeline, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}

	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}

	p := &process{name: name, command: command, lifeline: lifeline, ended: make(chan struct{})}

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

// stop asks the program to end, waits, and insists when that takes too long.
func (p *process) stop() error {
	// A process that has ended closed it already.
	_ = p.lifeline.Close()

	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTime):
	}

	// The session's group: the program and what it started.
	err := syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-p.ended

	return errors.Join(fmt.Errorf("%s did not stop within %s and was killed", p.name, stopTime), err)
}
