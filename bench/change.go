package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changes is how often a role is changed in one turn. A change takes a tenth of a second, which is too short to be
// measured once.
const changes = 5

// floorChange writes changes to all copies of a role, by merge patch: Ambit's rights hold no update.
func (b *bench) floorChange(ctx context.Context, round int) error {
	if !b.options.wants(measureChange) {
		return nil
	}

	copies, extra := b.copiesOfFirstRole(), ""

	for i := range changes {
		extra = fmt.Sprintf("patch-%d-%d", round, i)

		patch, err := json.Marshal(map[string]any{"rules": sourceRules(extra)})
		if err != nil {
			return err
		}

		stop := b.costs(ownCPU)

		if err := b.floor.patch(ctx, copies, mergePatch(string(patch))); err != nil {
			return err
		}

		b.figure(measureChange).addFloor(stop(time.Now()))
	}

	return b.verify(ctx, b.members, extra)
}

func (b *bench) copiesOfFirstRole() []client.Object {
	copies := make([]client.Object, 0, len(b.members))

	for _, namespace := range b.members {
		c, _ := b.copyOfFirstRole().DeepCopyObject().(*rbacv1.Role)
		c.Namespace = namespace
		copies = append(copies, c)
	}

	return copies
}

// ambitChange changes the source role and leaves the copies to Ambit.
func (b *bench) ambitChange(ctx context.Context, round int) error {
	return b.counting(measureChange, func() error {
		for i := range changes {
			b.extra = fmt.Sprintf("extra-%d-%d", round, i)

			took, err := b.oneChange(ctx)
			if err != nil {
				return fmt.Errorf("waiting for the copies: %w", err)
			}

			b.figure(measureChange).addAmbit(took)

			// The manager takes in the echo of its own writes meanwhile, which is no part of the next change.
			if err := sleep(ctx, 200*time.Millisecond); err != nil {
				return err
			}
		}

		return b.rest(ctx, b.members, 0)
	})
}

// oneChange measures from a change of the source until the last copy has it.
func (b *bench) oneChange(ctx context.Context) (cost, error) {
	w, err := observe(ctx, b.cluster.admin, &rbacv1.RoleList{},
		client.MatchingFields{"metadata.name": b.copyOfFirstRole().Name})
	if err != nil {
		return cost{}, err
	}
	defer w.stop()

	source := &rbacv1.Role{}
	source.Namespace, source.Name, source.Rules = operatorNamespace, roleName(0, 0), sourceRules(b.extra)
	changed := map[string]struct{}{}
	stop := b.costs(b.managerCPU)

	if err := b.cluster.admin.Update(ctx, source); err != nil {
		return cost{}, err
	}

	done, err := w.until(ctx, func(_ watch.EventType, obj client.Object) bool {
		if r, ok := obj.(*rbacv1.Role); ok && hasResource(r.Rules, b.extra) {
			changed[r.Namespace] = struct{}{}
		}

		return len(changed) == len(b.members)
	})
	if err != nil {
		return cost{}, err
	}

	return stop(done), nil
}

func hasResource(rules []rbacv1.PolicyRule, resource string) bool {
	for i := range rules {
		if slices.Contains(rules[i].Resources, resource) {
			return true
		}
	}

	return false
}
