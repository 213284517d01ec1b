package main

import (
	"context"
	"fmt"
	"time"
)

// ambitRestart starts the manager anew with everything in place, and measures what listing it costs. Once is enough: the
// result does not depend on how busy the machine is.
func (b *bench) ambitRestart(ctx context.Context, round int) error {
	if round < b.options.rounds-1 {
		return nil
	}

	if err := b.manager.stop(); err != nil {
		return err
	}

	return b.once(ctx, measureMemory, func() (cost, error) {
		started := time.Now()
		err := b.manager.start(ctx)

		return cost{wall: time.Since(started), client: b.managerCPU()}, err
	}, func() error {
		if err := b.cluster.audit.settled(ctx); err != nil {
			return err
		}

		b.memory.restart, b.memory.rest = b.manager.process().memory()

		return b.verify(ctx, b.members, b.extra)
	})
}

// ambitIdle counts what the manager asks for while nothing happens.
func (b *bench) ambitIdle(ctx context.Context, round int) error {
	if round < b.options.rounds-1 || b.options.idle == 0 {
		return nil
	}

	sayf("watching the manager do nothing for %s", b.options.idle)

	mark, err := b.cluster.audit.mark(ctx)
	if err != nil {
		return err
	}

	stop := b.costs(b.managerCPU)

	if err := sleep(ctx, b.options.idle); err != nil {
		return err
	}

	b.figure(measureIdle).addAmbit(stop(time.Now()))

	if b.idle, err = b.cluster.audit.since(mark); err != nil {
		return err
	}

	if b.idle[leaseRequests] == 0 {
		return fmt.Errorf("%w: the audit log does not even show the manager's lease", errWrong)
	}

	return nil
}
