package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// floorDrift creates a deleted copy again, as soon as it sees the deletion.
func (b *bench) floorDrift(ctx context.Context, _ int) error {
	return b.eachDrift(ctx, b.figure(measureDrift).addFloor, func(namespace string) error {
		role, _ := b.floor.firstRole()
		c := role.DeepCopy()
		c.Namespace = namespace

		return b.floor.nth(0).Create(ctx, c, client.FieldOwner(scope.FieldManager))
	})
}

// ambitDrift leaves the creation to Ambit.
func (b *bench) ambitDrift(ctx context.Context, _ int) error {
	return b.counting(ctx, measureDrift, func() error {
		if err := b.eachDrift(ctx, b.figure(measureDrift).addAmbit, func(string) error { return nil }); err != nil {
			return err
		}

		if err := b.cluster.audit.settled(ctx); err != nil {
			return err
		}

		return b.verify(ctx, b.members, b.extra)
	})
}

// drifting are the members in which a copy is deleted.
func (b *bench) drifting() []string { return b.members[:min(len(b.members), 10)] }

// eachDrift deletes a copy in several members, one after the other, and measures until each is back. heard is called when the
// deletion is seen.
func (b *bench) eachDrift(ctx context.Context, add func(cost), heard func(namespace string) error) error {
	for _, namespace := range b.drifting() {
		took, err := b.oneDrift(ctx, namespace, heard)
		if err != nil {
			return fmt.Errorf("deleting a copy in %s: %w", namespace, err)
		}

		add(took)
	}

	return nil
}

func (b *bench) oneDrift(ctx context.Context, namespace string, heard func(string) error) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	victim, err := b.copyIn(ctx, namespace)
	if err != nil {
		return cost{}, err
	}

	var failed error

	gone := false

	took, err := b.measure(ctx, func() error { return b.cluster.admin.Delete(ctx, victim) }, &effect{
		what: "another copy", fromNow: true, list: &rbacv1.RoleList{}, of: []client.ListOption{client.InNamespace(namespace)},
		seen: func(event watch.EventType, obj client.Object) bool {
			if !isOfFirstRole(obj) {
				return false
			}

			if event == watch.Deleted {
				gone, failed = true, heard(namespace)
			}

			return failed != nil || gone && event == watch.Added
		},
	})

	return took, errors.Join(err, failed)
}

// copyIn finds the copy of the first role in a member.
func (b *bench) copyIn(ctx context.Context, namespace string) (*rbacv1.Role, error) {
	roles, _, err := projectedIn(ctx, b.cluster.admin, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}

	for i := range roles {
		if isOfFirstRole(&roles[i]) {
			return &roles[i], nil
		}
	}

	return nil, fmt.Errorf("%w: there is no copy of %s", errWrong, roleName(0, 0))
}
