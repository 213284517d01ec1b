package apply

import (
	"context"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// findOwners makes the authorizations by which an account may write in a member the owners of its first copies there, also when
// no watch has reported them yet. Without owners the copies would outlast the authorizations, if these are taken back while Ambit
// does not run. Where the API server cannot be asked for them, nothing is written: nobody could take that back.
func (r *run) findOwners(ctx context.Context, m plan.Member, changes []*plan.Change, refused map[*plan.Change]error) {
	s := &r.plan.Scopes[m.Scope]
	if r.Authorizations == nil || !s.MayBeOwned(m.Namespace) {
		return
	}

	bare := collect.Filter(changes, func(c *plan.Change) bool {
		return c.Action == plan.Create && len(c.Owners) == 0 && refused[c] == nil
	})

	if len(bare) == 0 {
		return
	}

	there, err := r.authorizationsNow(ctx, m)

	for _, c := range bare {
		if c.Owners = s.OwnersIn(m.Namespace, there, c.Copy); err != nil {
			refused[c] = err
		}
	}
}

// authorizationsNow asks the API server for the authorizations in a member. What is there, and how large it is, is up to whoever
// administers the member.
func (r *run) authorizationsNow(ctx context.Context, m plan.Member) (there []facts.Authorization, err error) {
	id := r.identities[m.Scope]

	writer, err := r.as(id)
	if err != nil {
		return nil, err
	}

	reader, err := r.readerBeside(writer)
	if err != nil {
		return nil, err
	}

	err = r.askBounded(ctx, reviewed{id, m.Namespace}, func(ctx context.Context) (err error) {
		there, err = r.Authorizations(ctx, reader, m.Namespace, r.plan.Scopes[m.Scope].Scope.Owner)

		return err
	})

	return there, err
}
