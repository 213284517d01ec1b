// Command demo plays the end-to-end use case of a NamespaceScope on an embedded Kubernetes and checks every effect. With
// --serve it only installs Ambit there and leaves it running until Ctrl-C.
//
// It needs bin/ambit, bin/devcluster and bin/k8s, which make demo and make run build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errInterrupted ends the program because somebody asked for it.
var errInterrupted = errors.New("interrupted")

func main() {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	serve := flags.Bool("serve", false, "install Ambit and leave it running until Ctrl-C, without the play")

	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(exitUsage)
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "error: unknown argument %q; see --help\n", flags.Arg(0))
		os.Exit(exitUsage)
	}

	os.Exit(run(newScreen(os.Stdout), *serve))
}

func run(s *screen, serve bool) int {
	root, err := findRoot()
	if err != nil {
		return s.failed(err)
	}

	folder, err := os.MkdirTemp("", "ambit-demo-")
	if err != nil {
		return s.failed(err)
	}

	ctx, cancel := context.WithCancelCause(context.Background())
	go interrupt(cancel)
	go followParent(cancel)

	began := time.Now()
	st := &stage{screen: s, root: root, folder: folder, end: cancel}

	err = st.perform(ctx, serve)
	// What ended the context is the reason; what it broke is not.
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}

	err = errors.Join(err, st.clear())

	switch {
	case errors.Is(err, errInterrupted):
		err = errors.Join(os.RemoveAll(folder))
		s.say("\nStopped. Nothing is left running.")

		if serve && err == nil {
			return 0
		}

		return exitInterrupted
	case err != nil:
		code := s.failed(err)
		st.showLogs()

		return code
	}

	if err := os.RemoveAll(folder); err != nil {
		return s.failed(err)
	}

	s.say("\nAll %d effects were observed, in %d seconds. Nothing is left running.",
		s.observed, int(time.Since(began).Seconds()))

	return 0
}

// interrupt ends the context at the first signal. Those after it change nothing: what is running is being stopped. A
// reader of the output that went away (SIGPIPE) counts as well.
func interrupt(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)

	for range signals {
		cancel(errInterrupted)
	}
}

// followParent ends the context when the process that started this one is gone. When make is killed, so is go run, which
// tells nobody; without this a cluster would stay behind.
func followParent(cancel context.CancelCauseFunc) {
	parent := os.Getppid()
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}

	cancel(errInterrupted)
}

// findRoot returns the folder of the repository.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}

	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}

		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run this in the repository: no go.mod in this folder or above it")
		}

		dir = parent
	}

	for _, program := range []string{"bin/ambit", "bin/devcluster", "bin/k8s/kubectl"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return "", fmt.Errorf("%s is missing; run make build devcluster-k8s, or make demo for everything", program)
		}
	}

	return dir, nil
}
