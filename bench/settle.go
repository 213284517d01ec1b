package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settleTimeout is how long the readers of the watch list may take to be back.
const settleTimeout = 2 * time.Minute

// settle waits until every reader of the watch list was restarted so many times since the last call, every pod is there, and the
// manager asks for nothing any more. What is measured next then starts from rest. A restart too many is an error: otherwise,
// restarting every reader all the time would be the best way to be in time.
func (b *bench) settle(ctx context.Context, restarts int64) error {
	deadline := time.Now().Add(settleTimeout)

	for {
		readers, resting, err := b.readers(ctx, restarts)
		if err != nil {
			return err
		}

		if resting == len(readers) {
			break
		}

		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %d of %d readers are not at rest after %d restarts",
				errWrong, len(readers)-resting, len(readers), restarts)
		}

		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}

	if err := b.cluster.audit.settled(ctx); err != nil {
		return err
	}

	readers, _, err := b.readers(ctx, restarts)
	if err != nil {
		return err
	}

	for i := range readers {
		d := &readers[i]

		if last, known := b.generations[d.Name]; known && d.Generation != last+restarts {
			return fmt.Errorf("%w: %s was restarted %d times, not %d", errWrong, d.Name, d.Generation-last, restarts)
		}

		b.generations[d.Name] = d.Generation
	}

	return nil
}

// readers returns the readers and how many of them are at rest after so many restarts. A Deployment's generation counts
// the changes of its template, which nobody but Ambit makes.
func (b *bench) readers(ctx context.Context, restarts int64) ([]appsv1.Deployment, int, error) {
	var list appsv1.DeploymentList
	if err := b.cluster.admin.List(ctx, &list, client.InNamespace(operatorNamespace)); err != nil {
		return nil, 0, fmt.Errorf("looking at the readers: %w", err)
	}

	resting := 0

	for i := range list.Items {
		d := &list.Items[i]
		last, known := b.generations[d.Name]

		if s := d.Status; (!known || d.Generation >= last+restarts) && s.ObservedGeneration == d.Generation &&
			s.Replicas == 1 && s.UpdatedReplicas == 1 && s.AvailableReplicas == 1 {
			resting++
		}
	}

	return list.Items, resting, nil
}
