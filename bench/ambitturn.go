package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// step is what one side does for a measure.
type step struct {
	measure string
	take    func(ctx context.Context, round int) error
}

// takeAll takes the steps that are wanted. The scope is made and deleted in any case: the other side needs the place.
func (b *bench) takeAll(ctx context.Context, round int, steps ...step) error {
	for _, s := range steps {
		if !b.options.wants(s.measure) && s.measure != measureCold && s.measure != measureDelete {
			continue
		}

		if err := s.take(ctx, round); err != nil {
			return fmt.Errorf("measure %s: %w", s.measure, err)
		}
	}

	return nil
}

// ambitTurn takes every measure of Ambit once, with a manager that was just started.
func (b *bench) ambitTurn(ctx context.Context, round int) error {
	ctx, cancel := b.manager.guard(ctx)
	defer cancel()

	if err := b.manager.start(ctx); err != nil {
		return err
	}

	// The watch by which the start was noticed is faster than the audit log: the last request of the start must not be counted.
	if err := b.cluster.audit.settled(ctx); err != nil {
		return err
	}

	err := b.takeAll(ctx, round,
		step{measureCold, b.ambitCold},
		step{measureChange, b.ambitChange},
		step{measureMore, b.ambitMore},
		step{measureFewer, b.ambitFewer},
		step{measureDrift, b.ambitDrift},
		step{measureMemory, b.ambitRestart},
		step{measureIdle, b.ambitIdle},
		step{measureLook, b.look},
		step{measureDelete, b.ambitDelete},
		step{measureDelegated, b.ambitDelegated},
		// These come after the scope is deleted, because the checks count the projected objects of the whole cluster.
		step{measureTemplate, b.ambitTemplate},
		step{measureInstalls, b.ambitInstalls},
	)
	if err != nil {
		return err
	}

	return b.manager.stop()
}

// counting counts the manager's requests during a measure, up to when it is at rest.
func (b *bench) counting(ctx context.Context, name string, do func() error) error {
	mark, err := b.cluster.audit.mark(ctx)
	if err != nil {
		return err
	}

	if err := do(); err != nil {
		return err
	}

	b.counted[name], err = b.cluster.audit.since(mark)

	return err
}

// once takes a measure of Ambit once, and counts the manager's requests for it until it is at rest.
func (b *bench) once(
	ctx context.Context, name string, measure func() (cost, error), rest func() error,
) error {
	return b.counting(ctx, name, func() error {
		took, err := measure()
		if err != nil {
			return err
		}

		b.figure(name).addAmbit(took)

		return rest()
	})
}

// changing measures several changes of the same thing, each of which adds a resource to its rules.
func (b *bench) changing(
	ctx context.Context, name string, round int, change func(extra string) (cost, error), verify func() error,
) error {
	return b.counting(ctx, name, func() error {
		for i := range changes {
			took, err := change(fmt.Sprintf("extra-%d-%d", round, i))
			if err != nil {
				return err
			}

			b.figure(name).addAmbit(took)

			// Some objects are deleted after that, which must not fall into the next change.
			if err := b.cluster.audit.settled(ctx); err != nil {
				return err
			}
		}

		return verify()
	})
}

func (b *bench) managerCPU() time.Duration { return b.manager.process().cpu() }

func (b *bench) ambitCold(ctx context.Context, _ int) error {
	project := func() (cost, error) { return b.project(ctx, newScope(), b.members) }

	return b.once(ctx, measureCold, project, func() error {
		if err := b.rest(ctx, b.members, 1); err != nil {
			return err
		}

		peak, _ := b.manager.process().memory()
		b.memory.cold = max(b.memory.cold, peak)

		return nil
	})
}

// rest waits until everything that a measure caused is done, and checks the result.
func (b *bench) rest(ctx context.Context, members []string, restarts int64) error {
	if err := b.settle(ctx, restarts); err != nil {
		return err
	}

	if err := b.verifyList(ctx, members); err != nil {
		return err
	}

	return b.verify(ctx, members, b.extra)
}

// project creates the scope and measures until the watch list names every member. Ambit names a member only once its permissions
// exist.
func (b *bench) project(ctx context.Context, nss *operatorv1.NamespaceScope, members []string) (cost, error) {
	return b.untilListed(ctx, members, func() error { return b.cluster.admin.Create(ctx, nss) })
}

// untilListed measures from an action to the watch list that it leads to.
func (b *bench) untilListed(ctx context.Context, members []string, act func() error) (cost, error) {
	want := listOf(members)

	return b.measure(ctx, act, &effect{
		what: "the watch list", list: &corev1.ConfigMapList{},
		of: []client.ListOption{client.InNamespace(operatorNamespace), client.MatchingFields{"metadata.name": listName}},
		seen: func(_ watch.EventType, obj client.Object) bool {
			cm, ok := obj.(*corev1.ConfigMap)

			return ok && cm.Data[scope.ListKey] == want
		},
	})
}

// ambitMore lets a namespace join and measures until the watch list names it.
func (b *bench) ambitMore(ctx context.Context, _ int) error {
	members := append([]string{extraNamespace}, b.members...)

	return b.once(ctx, measureMore, func() (cost, error) {
		return b.untilListed(ctx, members, func() error { return b.label(ctx, memberLabel, true) })
	}, func() error { return b.rest(ctx, members, 1) })
}

// ambitFewer lets the namespace leave and measures until nothing of the scope is left in it.
func (b *bench) ambitFewer(ctx context.Context, _ int) error {
	if !b.options.wants(measureMore) {
		if err := b.ambitMore(ctx, 0); err != nil {
			return err
		}
	}

	left := b.options.accounts * b.options.roles
	unlabel := func() error { return b.label(ctx, memberLabel, false) }

	return b.once(ctx, measureFewer, func() (cost, error) {
		return b.measure(ctx, unlabel, &effect{
			what: "the end of all Roles of the namespace",
			list: &rbacv1.RoleList{}, of: []client.ListOption{client.InNamespace(extraNamespace)},
			seen: func(event watch.EventType, _ client.Object) bool {
				if event == watch.Deleted {
					left--
				}

				return left == 0
			},
		})
	}, func() error { return b.rest(ctx, b.members, 1) })
}

func (b *bench) ambitDelete(ctx context.Context, _ int) error {
	return b.once(ctx, measureDelete, func() (cost, error) { return b.deleteScope(ctx) }, func() error { return nil })
}

// deleteScope deletes the scope and measures until it is gone, which it may not be before everything of it is.
func (b *bench) deleteScope(ctx context.Context) (cost, error) {
	took, err := b.measure(ctx, func() error { return b.cluster.admin.Delete(ctx, newScope()) }, &effect{
		what: "the end of the scope",
		list: &operatorv1.NamespaceScopeList{}, of: []client.ListOption{client.InNamespace(operatorNamespace)},
		seen: func(event watch.EventType, _ client.Object) bool { return event == watch.Deleted },
	})
	if err != nil {
		return cost{}, err
	}

	if err := b.verify(ctx, nil, ""); err != nil {
		return cost{}, err
	}

	if err := b.settle(ctx, 1); err != nil {
		return cost{}, err
	}

	return took, b.verifyList(ctx, nil)
}
