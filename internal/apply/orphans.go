package apply

import (
	"context"

	"github.com/ambit-k8s/ambit/internal/plan"
)

// orphans takes away those orphans for which is says so.
func (r *run) orphans(ctx context.Context, is func(*plan.Change) bool) {
	if r.orphansAs.IsNobody() {
		r.out.Orphans.Nobody = "nobody knows who wrote what is left of scopes that are gone, and this Ambit writes nothing of its own"
	}

	for _, kind := range revoking() {
		var of []*plan.Change

		for i := range r.plan.Orphans {
			if c := &r.plan.Orphans[i]; c.Key.Kind == kind && is(c) && !r.orphanAs(c).IsNobody() {
				of = append(of, c)
			}
		}

		r.each(ctx, len(of), func(i int) {
			id := r.orphanAs(of[i])

			result, err := r.changeBounded(ctx, id, of[i])
			if err != nil {
				r.withoutDeleting(ctx, id, of[i], err)
			}

			r.mu.Lock()
			defer r.mu.Unlock()

			r.out.Orphans.note(of[i], result, err)
		})
	}
}

// orphanAs is who takes an orphan away: where Ambit itself may not, whoever writes for a scope that has the namespace as a
// member, or else for the first scope.
func (r *run) orphanAs(c *plan.Change) Identity {
	if at := r.plan.Guardian(c.Namespace); r.orphansAs.IsNobody() && at >= 0 {
		return r.identities[at]
	}

	return r.orphansAs.InMembers()
}
