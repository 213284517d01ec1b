package apply

import (
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// place is where an object is.
type place struct {
	namespace string
	key       facts.ProjectedKey
}

// part takes bindings away before their role changes that would go in the end: of namespaces that left, and of what is deleted.
// Whoever holds the role by one of them would hold its new rules until then, and for as long as Ambit does not run should that be
// the last that it does.
func (r *run) part(ctx context.Context) {
	parts := func(c *plan.Change) bool { return !r.stays(c) }

	r.changesIf(ctx, func(s *plan.ScopePlan) []plan.Change { return s.Prune }, parts, projected.BindingKinds()...)
	r.orphans(ctx, parts)
}

// stays says whether what is taken away stays until everything else is written.
func (r *run) stays(c *plan.Change) bool {
	_, changes := r.changing[roleOf(c)]

	return !changes || !c.Key.Kind.IsBinding()
}

// reduce takes from bindings the subjects that they are about to lose, where the role that they bind is about to change as well:
// roles are written before bindings, so these subjects would hold its new rules until then, which nobody ever meant. A binding
// whose role stays as it is needs no such step.
//
// What fails here fails again when the binding itself is written, and is reported then. It does not keep the role from being
// written: that may be what takes permissions away.
func (r *run) reduce(ctx context.Context) {
	var jobs []job

	for i := range r.plan.Scopes {
		grants := r.plan.Scopes[i].Grant
		for j := range grants {
			if c := &grants[j]; c.Action == plan.Update && c.Key.Kind.IsBinding() {
				jobs = append(jobs, job{i, c})
			}
		}
	}

	if len(jobs) == 0 {
		return // As with every first projection, which has the most bindings.
	}

	jobs = slices.DeleteFunc(jobs, func(j job) bool { return r.stays(j.change) })

	r.each(ctx, len(jobs), func(i int) { r.reduceOne(ctx, jobs[i]) })
}

func (r *run) changingRoles() map[place]struct{} {
	changing := map[place]struct{}{}

	for i := range r.plan.Scopes {
		for _, c := range r.plan.Scopes[i].Grant {
			if !c.Key.Kind.IsBinding() {
				changing[place{c.Namespace, c.Key}] = struct{}{}
			}
		}
	}

	return changing
}

// roleOf is where the role of a binding is, as a change of it would say.
func roleOf(c *plan.Change) place {
	role := place{c.Namespace, facts.ProjectedKey{Kind: projected.Kind(c.RoleRef.Kind), Name: c.RoleRef.Name}}
	if role.key.Kind == projected.ClusterRole {
		role.namespace = ""
	}

	return role
}

func (r *run) reduceOne(ctx context.Context, j job) {
	writer, err := r.as(r.identities[j.scope])
	if err != nil {
		return
	}

	obj, err := r.get(ctx, writer, j.change)
	if err != nil {
		return
	}

	live, _ := projected.From(obj)

	stay := slices.DeleteFunc(slices.Clone(live.Subjects), func(s rbacv1.Subject) bool {
		return !slices.Contains(j.change.Copy.Subjects, s)
	})
	if len(stay) == len(live.Subjects) {
		return
	}

	refused := r.refused[j.change]
	reduced, fewer := *j.change, *j.change.Copy
	fewer.Subjects, reduced.Copy, reduced.Loses = stay, &fewer, true

	if refused == nil {
		_, refused = r.changeBounded(ctx, r.identities[j.scope], &reduced)
	}

	if refused != nil {
		_, _ = r.withoutRights(ctx, job{j.scope, &reduced}, refused)
	}
}

// withoutRights makes a change that is refused as far as it takes rights away: who may not write what should be left of a Role,
// or of a binding, may still delete it, and neither a rule nor a subject that is no longer wanted must stay because somebody
// lacks the others, or because an admission policy takes no change. What may not be deleted is emptied.
func (r *run) withoutRights(ctx context.Context, j job, refused error) (Result, error) {
	r.withoutDeleting(ctx, r.identityFor(j.scope, j.change), j.change, refused)

	if j.change.Action == plan.Delete || Classify(refused) != Refused || !r.takesRights(j, refused) {
		return Failed, refused
	}

	removal := *j.change
	removal.Action, removal.Copy = plan.Delete, nil

	if result, err := r.changeBounded(ctx, r.identityFor(j.scope, &removal), &removal); err == nil {
		return result, nil
	}

	return Failed, refused
}

// withoutDeleting empties what was to be deleted, if an admission policy kept it from that. Of what may be somebody else's,
// nothing is taken.
func (r *run) withoutDeleting(ctx context.Context, id Identity, c *plan.Change, refused error) {
	_, lacks := errors.AsType[*MissingError](refused)
	if c.Action != plan.Delete || lacks || Classify(refused) != Refused || !c.Loses || !c.Named {
		return
	}

	emptied := *c
	emptied.Action = plan.Empty

	_, _ = r.changeBounded(ctx, id, &emptied) // It is there still, which is what there is to say.
}

// takesRights says whether somebody holds less by a change that is refused. Of what may not be changed, nothing is deleted
// because of its marks alone.
func (r *run) takesRights(j job, refused error) bool {
	if _, lacks := errors.AsType[*MissingError](refused); lacks || j.change.Loses {
		return j.change.Shrinks()
	}

	revoke := r.plan.Scopes[j.scope].Revoke

	return j.change.Shrinks() && slices.ContainsFunc(revoke, func(c plan.Change) bool {
		return c.Key == j.change.Key && c.Namespace == j.change.Namespace
	})
}
