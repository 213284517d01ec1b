// Command demo plays the end-to-end use case of a NamespaceScope on an embedded Kubernetes and checks every effect. With
// --serve it only installs Ambit there and leaves it running until Ctrl-C.
//
// It needs bin/ambit, bin/devcluster, bin/greeting and bin/k8s, which make demo and make run build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// afterthought is how long a program that died may take to be noticed, after what it served has failed.
const afterthought = 3 * time.Second

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
	if err := checkPrograms(serve); err != nil {
		return s.failed(err)
	}

	dir, err := os.MkdirTemp("", "ambit-demo-")
	if err != nil {
		return s.failed(err)
	}

	ctx, cancel := context.WithCancelCause(context.Background())
	go interrupt(cancel)
	go followParent(cancel)

	began := time.Now()
	st := &stage{screen: s, dir: dir, end: cancel}

	err = reason(ctx, st.perform(ctx, serve))
	// Before the manager is stopped, which it has much to say about.
	logged := st.lastLogged()
	err = errors.Join(err, st.clear())

	switch {
	case errors.Is(err, errInterrupted):
		err = errors.Join(os.RemoveAll(dir))
		s.sayf("\nStopped. Nothing is left running.")

		if serve && err == nil {
			return 0
		}

		return exitInterrupted
	case err != nil:
		code := s.failed(err)
		s.sayf("\nThe logs are in %s; nothing is left running.", dir)
		s.sayf("The manager's last lines:")
		s.block(logged)

		return code
	}

	if err := os.RemoveAll(dir); err != nil {
		return s.failed(err)
	}

	s.sayf("\nAll %d effects were observed, in %d seconds. Nothing is left running.",
		s.observed, int(time.Since(began).Seconds()))

	return 0
}

// reason says why an error came. What ended the context is the reason; what it broke is not, and may be seen first.
func reason(ctx context.Context, err error) error {
	if err == nil {
		return context.Cause(ctx)
	}

	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(afterthought):
		return err
	}
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

// checkPrograms says what is missing. Only the play has an operator that runs.
func checkPrograms(serve bool) error {
	programs := []string{"ambit", "devcluster", "k8s/kubectl"}
	if !serve {
		programs = append(programs, liveProgram)
	}

	for _, name := range programs {
		if _, err := os.Stat(embedded.Program(name)); err != nil {
			return fmt.Errorf("bin/%s is missing; run make build devcluster-k8s, or make demo for everything", name)
		}
	}

	return nil
}
