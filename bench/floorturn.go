package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// floorLabel stands for the member label when the floor pretends that a namespace joins.
const floorLabel = "bench.example.com/floored"

// floorTurn writes everything that Ambit's turn will make Ambit write.
func (b *bench) floorTurn(ctx context.Context, round int) error {
	objects := b.floor.objects(b.members)
	stop := b.costs(ownCPU)

	if err := b.floor.create(ctx, objects); err != nil {
		return fmt.Errorf("creating %d objects: %w", len(objects), err)
	}

	b.figure(measureCold).addFloor(stop(time.Now()))

	if err := b.verify(ctx, b.members, ""); err != nil {
		return err
	}

	if err := b.floorChange(ctx, round); err != nil {
		return fmt.Errorf("changing a role: %w", err)
	}

	if err := b.floorNamespace(ctx); err != nil {
		return fmt.Errorf("one namespace more and fewer: %w", err)
	}

	if err := b.floorDrift(ctx); err != nil {
		return fmt.Errorf("undoing drift: %w", err)
	}

	stop = b.costs(ownCPU)

	if err := b.floor.remove(ctx, objects); err != nil {
		return fmt.Errorf("deleting %d objects: %w", len(objects), err)
	}

	b.figure(measureDelete).addFloor(stop(time.Now()))

	if err := b.floorTemplate(ctx, round); err != nil {
		return fmt.Errorf("a template: %w", err)
	}

	if err := b.floorInstalls(ctx); err != nil {
		return fmt.Errorf("installs: %w", err)
	}

	return b.verify(ctx, nil, "")
}

// floorNamespace does what one more namespace and one fewer ask for, with the label that Ambit would wait for.
func (b *bench) floorNamespace(ctx context.Context) error {
	objects := b.floor.objects([]string{extraNamespace})
	stop := b.costs(ownCPU)

	err := b.label(ctx, extraNamespace, floorLabel, true)
	if err == nil {
		err = b.floor.create(ctx, objects)
	}

	if err == nil {
		err = b.floor.writeList(ctx, append([]string{extraNamespace}, b.members...))
	}

	if err != nil {
		return err
	}

	b.figure(measureMore).addFloor(stop(time.Now()))

	stop = b.costs(ownCPU)

	err = b.label(ctx, extraNamespace, floorLabel, false)
	if err == nil {
		err = b.floor.writeList(ctx, b.members)
	}

	if err == nil {
		err = b.floor.remove(ctx, objects)
	}

	if err != nil {
		return err
	}

	b.figure(measureFewer).addFloor(stop(time.Now()))

	return nil
}

// label puts a label on a namespace or takes it off.
func (b *bench) label(ctx context.Context, namespace, label string, on bool) error {
	value := "null"
	if on {
		value = `"true"`
	}

	ns := &corev1.Namespace{}
	ns.Name = namespace

	return b.cluster.admin.Patch(ctx, ns, mergePatch(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, value)))
}
