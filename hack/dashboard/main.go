// Command dashboard draws the chart's dashboard for the documentation, with what a Prometheus recorded of Ambit on an embedded
// cluster. "make dashboard" runs it.
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

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

func main() {
	definition := flag.String("dashboard", "charts/ambit/monitoring/dashboard.json", "the dashboard")
	picture := flag.String("o", "docs/images/dashboard.svg", "the picture to write")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *definition, *picture)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, definition, picture string) error {
	log.SetLogger(logr.Discard())

	d, err := readDashboard(definition)
	if err != nil {
		return err
	}

	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}

	bed, err := testbed.Start(ctx, "cluster", "--metrics-secure=true", "--metrics-bind-address="+address,
		"--restart-interval="+restartInterval.String())
	if err != nil {
		return fmt.Errorf("starting a cluster with Ambit: %w", err)
	}

	recorded, err := record(ctx, bed, address, d)
	if err := errors.Join(err, bed.Stop()); err != nil {
		return err
	}

	out, err := os.Create(picture)
	if err != nil {
		return fmt.Errorf("making the picture: %w", err)
	}

	return errors.Join(draw(out, d, recorded), out.Close())
}

// record plays the scene while a Prometheus scrapes Ambit, and then asks it what the dashboard asks.
func record(ctx context.Context, bed *testbed.Bed, address string, d *dashboard) (*recording, error) {
	p, err := startPrometheus(ctx, bed, address)
	if err != nil {
		return nil, err
	}

	from := time.Now()

	err = play(ctx, bed.Client)
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}

	recorded, err := p.ask(ctx, d, from, time.Now())

	return recorded, errors.Join(err, p.stop())
}
