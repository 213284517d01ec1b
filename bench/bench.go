package main

import (
	"context"
	"fmt"
	"time"
)

// bench takes the measures at one size.
type bench struct {
	options *options
	cluster *cluster
	manager *manager
	floor   *floor
	members []string

	figures map[string]*figure
	// counted are the manager's requests for each measure, in the last round.
	counted map[string]requests
	// generations are the generations of the readers when they were last at rest.
	generations map[string]int64
	// extra is the resource that was last added to the first source role.
	extra string

	memory memoryFigures
	idle   requests
}

// memoryFigures are the resident memory of the manager, in bytes.
type memoryFigures struct {
	cold, restart, rest, installs int64
	// page is the memory of "ambit serve" at its peak.
	page int64
}

func newBench(ctx context.Context, o *options, c *cluster, namespaces int) (*bench, error) {
	b := &bench{
		options: o, cluster: c, figures: map[string]*figure{}, counted: map[string]requests{},
		generations: map[string]int64{},
		floor:       &floor{pace: pace{maxConnections, o.parallel}},
	}
	for i := range namespaces {
		b.members = append(b.members, memberName(i))
	}

	var err error

	if b.floor.connections, err = floorClients(ctx, c); err != nil {
		return nil, err
	}

	if b.manager, err = newManager(ctx, o, c); err != nil {
		return nil, err
	}

	sayf("creating %d namespaces and %d operators", namespaces, o.accounts)

	return b, createWorld(ctx, c.admin, o, b.members)
}

// run takes all measures.
func (b *bench) run(ctx context.Context) (*table, error) {
	if err := b.settle(ctx, 0); err != nil {
		return nil, err
	}

	if err := b.warmUp(ctx); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}

	for round := range b.options.rounds {
		sayf("round %d of %d: the floor", round+1, b.options.rounds)

		// The manager does not run meanwhile: it would watch, and undo, what the floor writes.
		if err := b.floorTurn(ctx, round); err != nil {
			return nil, fmt.Errorf("the floor: %w", err)
		}

		sayf("round %d of %d: ambit", round+1, b.options.rounds)

		if err := b.ambitTurn(ctx, round); err != nil {
			return nil, err
		}
	}

	return b.table(), nil
}

// warmUp lets Ambit project into a few members, learns from that what the floor has to write, and finds the floor's best
// pace. None of it is measured.
func (b *bench) warmUp(ctx context.Context) error {
	few := b.members[:min(len(b.members), 5)]

	if err := b.manager.start(ctx); err != nil {
		return err
	}

	if _, err := b.project(ctx, newScope(few...), few); err != nil {
		return err
	}

	if err := b.settle(ctx, 1); err != nil {
		return err
	}

	if err := b.verify(ctx, few, ""); err != nil {
		return err
	}

	if err := b.floor.record(ctx, b.cluster.admin, few[0]); err != nil {
		return err
	}

	if _, err := b.deleteScope(ctx); err != nil {
		return err
	}

	if err := b.manager.stop(); err != nil {
		return err
	}

	if b.floor.parallel != 0 {
		return nil
	}

	sayf("looking for the floor's best pace")

	return b.floor.tune(ctx, b.members)
}

// cost is what something took: time, and the processor time of both sides of the wire.
type cost struct {
	wall, server, client time.Duration
}

// costs starts to count; the function that it returns stops.
func (b *bench) costs(client func() time.Duration) func(end time.Time) cost {
	started, server, own := time.Now(), b.serverCPU(), client()

	return func(end time.Time) cost {
		return cost{wall: end.Sub(started), server: b.serverCPU() - server, client: client() - own}
	}
}

func (b *bench) serverCPU() time.Duration { return b.cluster.server.cpu() + b.cluster.etcd.cpu() }
