package main

import (
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// figure holds what all rounds measured of one thing.
type figure struct{ floor, ambit []cost }

func (b *bench) figure(name string) *figure {
	if b.figures[name] == nil {
		b.figures[name] = &figure{}
	}

	return b.figures[name]
}

func (f *figure) addFloor(c cost) { f.floor = append(f.floor, c) }

func (f *figure) addAmbit(c cost) { f.ambit = append(f.ambit, c) }

// byFloor measures what the floor does.
func (b *bench) byFloor(name string, do func() error) error {
	stop := b.costs(ownCPU)

	if err := do(); err != nil {
		return err
	}

	b.figure(name).addFloor(stop(time.Now()))

	return nil
}

func wall(c cost) time.Duration       { return c.wall }
func server(c cost) time.Duration     { return c.server }
func clientPart(c cost) time.Duration { return c.client }

// median returns the median of one part of several costs, or 0 without costs.
func median(costs []cost, part func(cost) time.Duration) time.Duration {
	if len(costs) == 0 {
		return 0
	}

	all := collect.Map(costs, part)

	slices.Sort(all)

	middle := len(all) / 2
	if len(all)%2 == 1 {
		return all[middle]
	}

	return (all[middle-1] + all[middle]) / 2
}
