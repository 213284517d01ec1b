package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// aloneFor is how long the tenant is measured while nobody else writes.
const aloneFor = 30 * time.Second

// fairnessRow is what a tenant's controller waits under one condition, in all rounds.
type fairnessRow struct {
	name string
	// values are the chart's values that enable its FlowSchema; none without it. ambit says whether Ambit projects meanwhile.
	values []string
	ambit  bool

	waits  []time.Duration
	failed int
	// projections are how long Ambit took, and refused how many of its requests the API server refused at first.
	projections []time.Duration
	refused     int
}

func fairnessRows() []*fairnessRow {
	enabled := "flowSchema.enabled=true"
	own := []string{enabled, "flowSchema.priorityLevel.create=true", "flowSchema.priorityLevel.name=ambit"}

	return []*fairnessRow{
		{name: "nobody else"},
		{name: "Ambit's cold projection", ambit: true},
		{name: "the same, with the FlowSchema", ambit: true, values: []string{enabled}},
		{name: "the same, with a level of its own that borrows nothing", ambit: true,
			values: append(own, "flowSchema.priorityLevel.shares=1", "flowSchema.priorityLevel.borrowingLimitPercent=0")},
	}
}

// fairness measures what a tenant's controller waits for its writes beside a cold projection.
func fairness(ctx context.Context, o *options, out io.Writer) error {
	for _, n := range o.namespaces {
		rows := fairnessRows()

		err := onCluster(ctx, o, n, func(ctx context.Context, b *bench) error { return b.fairness(ctx, rows) })
		if err != nil {
			return err
		}

		printFairness(out, o, n, rows)
	}

	return nil
}

func (b *bench) fairness(ctx context.Context, rows []*fairnessRow) error {
	t, err := newTenant(ctx, b.cluster)
	if err != nil {
		return err
	}

	ctx, cancel := b.manager.guard(ctx)
	defer cancel()

	if err := b.settle(ctx, 0); err != nil {
		return err
	}

	if err := b.manager.start(ctx); err != nil {
		return err
	}

	for round := range b.options.rounds {
		for _, r := range rows {
			sayf("round %d of %d: %s", round+1, b.options.rounds, r.name)

			if err := b.fairnessTurn(ctx, t, r); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}

	return nil
}

// fairnessTurn measures one row once, and takes away what it made.
func (b *bench) fairnessTurn(ctx context.Context, t *tenant, r *fairnessRow) error {
	takeAway, err := b.cluster.flowSchema(ctx, r.values)
	if err != nil {
		return err
	}

	mark, err := b.cluster.audit.mark(ctx)
	if err != nil {
		return err
	}

	stop := t.write(ctx)

	if r.ambit {
		took, err := b.project(ctx, newScope(), b.members)
		if err != nil {
			return err
		}

		r.projections = append(r.projections, took.wall)
	} else if err := sleep(ctx, aloneFor); err != nil {
		return err
	}

	waits, failed := stop()
	r.waits, r.failed = append(r.waits, waits...), r.failed+failed

	if r.ambit {
		made, err := b.cluster.audit.since(mark)
		if err != nil {
			return err
		}

		r.refused += made.refused()

		if err := b.rest(ctx, b.members, 1); err != nil {
			return err
		}

		if _, err := b.deleteScope(ctx); err != nil {
			return err
		}
	}

	return takeAway()
}

// flowSchema installs what the chart has of priority and fairness, with values, waits until the API server follows it, and
// returns what takes it away.
func (c *cluster) flowSchema(ctx context.Context, values []string) (func() error, error) {
	if len(values) == 0 {
		return func() error { return nil }, nil
	}

	arguments := []string{
		"template", "ambit", filepath.Join(embedded.Root(), "charts", "ambit"), "--namespace", embedded.Namespace,
		"--kube-version", "1.36", "--show-only", "templates/protection.yaml",
	}
	for _, v := range values {
		arguments = append(arguments, "--set", v)
	}

	var complaints bytes.Buffer

	helm := exec.CommandContext(ctx, embedded.Program("tools/helm"), arguments...)
	helm.Env = append(os.Environ(), "HELM_CONFIG_HOME="+c.dir, "HELM_CACHE_HOME="+c.dir, "HELM_DATA_HOME="+c.dir)
	helm.Stderr = &complaints

	rendered, err := helm.Output()
	if err != nil {
		return nil, fmt.Errorf("rendering the chart (make bin/tools/helm builds what it takes): %w: %s", err, complaints.String())
	}

	path := filepath.Join(c.dir, "protection.yaml")
	if err := os.WriteFile(path, rendered, 0o600); err != nil {
		return nil, err
	}

	if _, err := c.embedded.Kubectl(ctx, "apply", "--server-side", "-f", path); err != nil {
		return nil, err
	}

	// The API server learns of it by a watch, and nothing but its answers shows that it has.
	if err := sleep(ctx, 2*time.Second); err != nil {
		return nil, err
	}

	return func() error {
		_, err := c.embedded.Kubectl(ctx, "delete", "-f", path)

		return err
	}, nil
}

// percentile is the longest wait among the given percentage of the shortest ones.
func percentile(waits []time.Duration, percent float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}

	sorted := slices.Sorted(slices.Values(waits))

	return sorted[max(0, int(math.Ceil(float64(len(sorted))*percent/100))-1)]
}

func printFairness(out io.Writer, o *options, namespaces int, rows []*fairnessRow) {
	objects := namespaces * o.accounts * o.roles * 2
	fmt.Fprintf(out, "\nWhat a tenant's controller waits for each of %d writes in a second, beside a projection of %d objects; "+
		"rounds: %d\n\n",
		int(time.Second/tenantEvery), objects, o.rounds)

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BESIDE\tWRITES\tFAILED\tMEDIAN\tP99\tLONGEST\tTHE PROJECTION TOOK\tREFUSED AT FIRST\t")

	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t\n", r.name, len(r.waits), r.failed, show(percentile(r.waits, 50)),
			show(percentile(r.waits, 99)), show(percentile(r.waits, 100)), show(percentile(r.projections, 50)), r.refused)
	}

	_ = w.Flush() // What a terminal that went away does not show is lost either way.
}
