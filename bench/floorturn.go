package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// floorLabel stands for the member label when the floor pretends that a namespace joins.
const floorLabel = "bench.example.com/floored"

// floorTurn writes everything that Ambit's turn will make Ambit write.
func (b *bench) floorTurn(ctx context.Context, round int) error {
	objects := b.floor.objects(b.members)

	err := b.takeAll(ctx, round,
		step{measureCold, func(ctx context.Context, _ int) error {
			if err := b.byFloor(measureCold, func() error { return b.floor.create(ctx, objects) }); err != nil {
				return err
			}

			return b.verify(ctx, b.members, "")
		}},
		step{measureChange, b.floorChange},
		step{measureFewer, b.floorNamespace},
		step{measureDrift, b.floorDrift},
		step{measureDelete, func(ctx context.Context, _ int) error {
			return b.byFloor(measureDelete, func() error { return b.floor.remove(ctx, objects) })
		}},
		step{measureTemplate, b.floorTemplate},
		step{measureInstalls, b.floorInstalls},
	)
	if err != nil {
		return err
	}

	return b.verify(ctx, nil, "")
}

// floorNamespace does what one more namespace and one fewer ask for, with the label that Ambit would wait for.
func (b *bench) floorNamespace(ctx context.Context, _ int) error {
	objects := b.floor.objects([]string{extraNamespace})

	err := b.byFloor(measureMore, func() error {
		if err := b.label(ctx, floorLabel, true); err != nil {
			return err
		}

		if err := b.floor.create(ctx, objects); err != nil {
			return err
		}

		return b.floor.writeList(ctx, append([]string{extraNamespace}, b.members...))
	})
	if err != nil {
		return err
	}

	return b.byFloor(measureFewer, func() error {
		if err := b.label(ctx, floorLabel, false); err != nil {
			return err
		}

		if err := b.floor.writeList(ctx, b.members); err != nil {
			return err
		}

		return b.floor.remove(ctx, objects)
	})
}

// label puts a label on the extra namespace or takes it off.
func (b *bench) label(ctx context.Context, label string, on bool) error {
	value := "null"
	if on {
		value = `"true"`
	}

	ns := &corev1.Namespace{}
	ns.Name = extraNamespace

	return b.cluster.admin.Patch(ctx, ns, mergePatch(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, label, value)))
}
