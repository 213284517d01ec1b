package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// changes is how often a role is changed in one turn. A change takes a tenth of a second, which is too short to be
// measured once.
const changes = 5

// floorChange makes the writes that a change asks for in every member. The role loses what it is no longer to have, by a merge
// patch, since Ambit's rights do not include update. It never gains anything: a new role comes with a new binding, so that nobody
// who bound the old one gains by it. Ambit deletes the old ones a second later, for which nobody waits.
func (b *bench) floorChange(ctx context.Context, round int) error {
	extra := ""

	for i := range changes {
		extra = fmt.Sprintf("patch-%d-%d", round, i)
		roles, bindings := b.floor.replaced(b.members, extra)

		err := b.byFloor(measureChange, func() error {
			// Before the first change there is nothing to lose.
			if i > 0 {
				if err := b.floorRules(ctx, ""); err != nil {
					return err
				}
			}

			return errors.Join(b.floor.create(ctx, roles), b.floor.create(ctx, bindings))
		})
		if err != nil {
			return err
		}

		// The old ones stay, with the rules of the new, so that the rest of the turn finds what it expects.
		if err := errors.Join(b.floor.remove(ctx, bindings), b.floor.remove(ctx, roles), b.floorRules(ctx, extra)); err != nil {
			return err
		}
	}

	return b.verify(ctx, b.members, extra)
}

// floorRules gives all copies of the first role their rules.
func (b *bench) floorRules(ctx context.Context, extra string) error {
	patch, err := rulesPatch(extra)
	if err != nil {
		return err
	}

	role, _ := b.floor.firstRole()
	copies := []client.Object{}

	for _, namespace := range b.members {
		c := role.DeepCopy()
		c.Namespace = namespace
		copies = append(copies, c)
	}

	return b.floor.patch(ctx, copies, patch)
}

// rulesPatch gives a role its rules.
func rulesPatch(extra string) (client.Patch, error) {
	patch, err := json.Marshal(map[string]any{"rules": sourceRules(extra)})

	return mergePatch(string(patch)), err
}

// replaced are the role and the binding that come in place of the first in each member.
func (f *floor) replaced(members []string, extra string) (roles, bindings []client.Object) {
	firstRole, firstBinding := f.firstRole()

	for _, namespace := range members {
		role, binding := firstRole.DeepCopy(), firstBinding.DeepCopy()
		role.Namespace, role.Name, role.Rules = namespace, role.Name+"-new", sourceRules(extra)
		binding.Namespace, binding.Name, binding.RoleRef.Name = namespace, binding.Name+"-new", role.Name
		roles, bindings = append(roles, role), append(bindings, binding)
	}

	return roles, bindings
}

// ambitChange changes the source role and leaves the copies to Ambit.
func (b *bench) ambitChange(ctx context.Context, round int) error {
	return b.changing(ctx, measureChange, round, func(extra string) (cost, error) {
		b.extra = extra

		return b.oneChange(ctx)
	}, func() error { return b.rest(ctx, b.members, 0) })
}

// oneChange measures from a change of the source until the operator has the rules in the last member.
func (b *bench) oneChange(ctx context.Context) (cost, error) {
	source := &rbacv1.Role{}
	source.Namespace, source.Name, source.Rules = operatorNamespace, roleName(0, 0), sourceRules(b.extra)
	bound := map[string]struct{}{}

	return b.measure(ctx, func() error { return b.cluster.admin.Update(ctx, source) }, &effect{
		what: "the copies", fromNow: true,
		list: &rbacv1.RoleBindingList{}, of: []client.ListOption{client.HasLabels{scope.LabelScope}},
		seen: func(event watch.EventType, obj client.Object) bool {
			if event == watch.Added {
				bound[obj.GetNamespace()] = struct{}{}
			}

			return len(bound) == len(b.members)
		},
	})
}
