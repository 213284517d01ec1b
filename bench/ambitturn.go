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
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

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

	steps := []struct {
		name string
		run  func(context.Context, int) error
	}{
		{measureCold, b.ambitCold},
		{measureChange, b.ambitChange},
		{measureMore, b.ambitMore},
		{measureFewer, b.ambitFewer},
		{measureDrift, func(ctx context.Context, _ int) error { return b.ambitDrift(ctx) }},
		{measureMemory, b.ambitRestart},
		{measureIdle, b.ambitIdle},
		{measureLook, b.look},
		{measureDelete, b.ambitDelete},
		{measureDelegated, b.ambitDelegated},
		// These come after the scope is deleted, because the checks count the projected objects of the whole cluster.
		{measureTemplate, b.ambitTemplate},
		{measureInstalls, b.ambitInstalls},
	}

	for _, s := range steps {
		// The scope is made and deleted in any case: the next turn of the floor needs the place.
		if !b.options.wants(s.name) && s.name != measureCold && s.name != measureDelete {
			continue
		}

		if err := s.run(ctx, round); err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
	}

	return b.manager.stop()
}

// counting counts the manager's requests during a measure, up to when it is at rest.
func (b *bench) counting(name string, do func() error) error {
	mark, err := b.cluster.audit.mark()
	if err != nil {
		return err
	}

	if err := do(); err != nil {
		return err
	}

	b.counted[name], err = b.cluster.audit.since(mark, embedded.ServiceAccount)

	return err
}

func (b *bench) managerCPU() time.Duration { return b.manager.process().cpu() }

func (b *bench) ambitCold(ctx context.Context, _ int) error {
	return b.counting(measureCold, func() error {
		took, err := b.project(ctx, newScope(), b.members)
		if err != nil {
			return err
		}

		b.figure(measureCold).addAmbit(took)

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
	w, err := observe(ctx, b.cluster.admin, &corev1.ConfigMapList{}, client.InNamespace(operatorNamespace),
		client.MatchingFields{"metadata.name": listName})
	if err != nil {
		return cost{}, err
	}
	defer w.stop()

	want := listOf(members)
	stop := b.costs(b.managerCPU)

	if err := act(); err != nil {
		return cost{}, err
	}

	done, err := w.until(ctx, func(_ watch.EventType, obj client.Object) bool {
		cm, ok := obj.(*corev1.ConfigMap)

		return ok && cm.Data[scope.ListKey] == want
	})
	if err != nil {
		return cost{}, fmt.Errorf("waiting for the watch list: %w", err)
	}

	return stop(done), nil
}

// ambitMore lets a namespace join and measures until the watch list names it.
func (b *bench) ambitMore(ctx context.Context, _ int) error {
	members := append([]string{extraNamespace}, b.members...)

	return b.counting(measureMore, func() error {
		took, err := b.untilListed(ctx, members, func() error { return b.label(ctx, extraNamespace, memberLabel, true) })
		if err != nil {
			return err
		}

		b.figure(measureMore).addAmbit(took)

		return b.rest(ctx, members, 1)
	})
}

// ambitFewer lets the namespace leave and measures until nothing of the scope is left in it.
func (b *bench) ambitFewer(ctx context.Context, _ int) error {
	if !b.options.wants(measureMore) {
		if err := b.ambitMore(ctx, 0); err != nil {
			return err
		}
	}

	return b.counting(measureFewer, func() error {
		w, err := observe(ctx, b.cluster.admin, &rbacv1.RoleList{}, client.InNamespace(extraNamespace))
		if err != nil {
			return err
		}
		defer w.stop()

		left := b.options.accounts * b.options.roles
		stop := b.costs(b.managerCPU)

		if err := b.label(ctx, extraNamespace, memberLabel, false); err != nil {
			return err
		}

		done, err := w.until(ctx, func(event watch.EventType, _ client.Object) bool {
			if event == watch.Deleted {
				left--
			}

			return left == 0
		})
		if err != nil {
			return fmt.Errorf("waiting until the namespace is empty: %w", err)
		}

		b.figure(measureFewer).addAmbit(stop(done))

		return b.rest(ctx, b.members, 1)
	})
}

func (b *bench) ambitDelete(ctx context.Context, _ int) error {
	return b.counting(measureDelete, func() error {
		took, err := b.deleteScope(ctx)
		if err != nil {
			return err
		}

		b.figure(measureDelete).addAmbit(took)

		return nil
	})
}

// deleteScope deletes the scope and measures until it is gone, which it may not be before everything of it is.
func (b *bench) deleteScope(ctx context.Context) (cost, error) {
	w, err := observe(ctx, b.cluster.admin, &operatorv1.NamespaceScopeList{}, client.InNamespace(operatorNamespace))
	if err != nil {
		return cost{}, err
	}
	defer w.stop()

	stop := b.costs(b.managerCPU)

	if err := b.cluster.admin.Delete(ctx, newScope()); err != nil {
		return cost{}, err
	}

	done, err := w.until(ctx, func(event watch.EventType, _ client.Object) bool { return event == watch.Deleted })
	if err != nil {
		return cost{}, fmt.Errorf("waiting for the end of the scope: %w", err)
	}

	took := stop(done)

	if err := b.verify(ctx, nil, ""); err != nil {
		return cost{}, err
	}

	if err := b.settle(ctx, 1); err != nil {
		return cost{}, err
	}

	return took, b.verifyList(ctx, nil)
}
