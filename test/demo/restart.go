package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// expectRestart waits until both operators were rolled out once more, and then makes sure that it stays at that.
func (p *play) expectRestart(ctx context.Context) error {
	p.rollouts++
	expected := strconv.Itoa(p.rollouts)
	operators := []operator{secretman, certman}

	for _, o := range operators {
		if err := p.expectRollout(ctx, o, expected); err != nil {
			return err
		}
	}

	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(quiet):
	}

	for _, o := range operators {
		seen, err := p.world.rollouts(ctx, o)
		if err != nil || seen != expected {
			return errors.Join(&unexpected{string(o) + " restarted once", expected + " rollouts", seen + " rollouts"}, err)
		}
	}

	p.screen.seenf(0, "each of them once, and not again")

	return nil
}

// expectRollout waits until an operator runs in a new pod, and says which that is.
func (p *play) expectRollout(ctx context.Context, o operator, expected string) error {
	count := func(ctx context.Context) (string, error) { return p.world.rollouts(ctx, o) }

	after, err := p.await(ctx, string(o)+" restarted", expected, count)
	if err != nil {
		return err
	}

	pod, err := p.world.pods(ctx, o)
	if err != nil {
		return err
	}

	if pod == p.pods[o] {
		return &unexpected{string(o) + " restarted", "a pod other than " + p.pods[o], pod}
	}

	p.screen.seenf(after, "%s restarted: pod %s → %s", o, p.pods[o], pod)
	p.pods[o] = pod

	return nil
}

// notePods notes in which pods the operators run.
func (p *play) notePods(ctx context.Context) error {
	for _, o := range []operator{secretman, certman} {
		pod, err := p.world.pods(ctx, o)
		if err != nil {
			return fmt.Errorf("looking for the pod of %s: %w", o, err)
		}

		p.pods[o] = pod
	}

	return nil
}
