// Command bench measures Ambit on a real API server, each figure beside the floor: what a bare client needs to do the same
// writes, on the same cluster, in the same run. A machine's speed cancels out in the ratio.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var errInterrupted = errors.New("interrupted; everything is stopped")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:])

	stop()
	os.Exit(code)
}

// run returns the exit code: 0 done, 1 when something is wrong or, with --strict, slower than its target, 2 wrong usage.
func run(ctx context.Context, args []string) int {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)

		return 2
	}

	// The libraries' own words would end up between the tables.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())

	for name, alone := range map[string]func(context.Context, *options, io.Writer) error{
		measureHostile: hostile, measureFairness: fairness,
	} {
		if !slices.Contains(o.only, name) {
			continue
		}

		if err := alone(ctx, o, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)

			return 1
		}

		return 0
	}

	missed := 0

	for _, n := range o.namespaces {
		var t *table

		err := onCluster(ctx, o, n, func(ctx context.Context, b *bench) (err error) {
			t, err = b.run(ctx)

			return err
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)

			return 1
		}

		t.print(os.Stdout)
		missed += t.missed()
	}

	if missed > 0 {
		fmt.Printf("%d targets were missed.\n", missed)

		if o.strict {
			return 1
		}
	}

	return 0
}

// onCluster does something at one size, on a cluster of its own: what one size left in etcd must not slow the next.
func onCluster(ctx context.Context, o *options, namespaces int, do func(context.Context, *bench) error) error {
	sayf("%d namespaces: starting a cluster", namespaces)

	c, err := startCluster(ctx)
	if err != nil {
		return err
	}

	b, err := newBench(ctx, o, c, namespaces)
	if err == nil {
		if err = do(ctx, b); err != nil {
			err = errors.Join(fmt.Errorf("%d namespaces: %w", namespaces, err),
				fmt.Errorf("the manager's last words:\n%s", b.manager.lastWords()))
		}

		err = errors.Join(err, b.manager.stop())
	}

	stopped := c.stop()

	if ctx.Err() != nil {
		return errors.Join(errInterrupted, stopped)
	}

	return errors.Join(err, stopped)
}

// sayf reports progress on standard error; only the tables go to standard output.
func sayf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
