package apply

import (
	"context"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// findOwners makes the authorization by which an account may write in a member the owner of its first copies there, also when no
// watch has reported the authorization yet. Without the owner they would outlast the authorization, if that is taken back while
// Ambit does not run. Where the API server cannot be asked for it, nothing is written: nobody could take that back.
func (r *run) findOwners(ctx context.Context, m plan.Member, changes []*plan.Change, refused map[*plan.Change]error) {
	s := &r.plan.Scopes[m.Scope]
	if r.Authorizations == nil || !s.MayBeOwned(m.Namespace) {
		return
	}

	var bare []*plan.Change

	for _, c := range changes {
		if c.Action == plan.Create && c.Owner == nil && refused[c] == nil {
			bare = append(bare, c)
		}
	}

	if len(bare) == 0 {
		return
	}

	owner, err := r.ownerNow(ctx, m)

	for _, c := range bare {
		if c.Owner = owner; err != nil {
			refused[c] = err
		}
	}
}

// ownerNow asks the API server for the owner of a scope's copies in a member.
func (r *run) ownerNow(ctx context.Context, m plan.Member) (*projected.OwnerRef, error) {
	writer, err := r.as(r.identities[m.Scope])
	if err != nil {
		return nil, err
	}

	reader, err := r.readerBeside(writer)
	if err != nil {
		return nil, err
	}

	s := &r.plan.Scopes[m.Scope]

	there, err := r.Authorizations(ctx, reader, m.Namespace, s.Scope.Owner.Namespace)
	if err != nil {
		return nil, err
	}

	return s.OwnerIn(m.Namespace, there), nil
}
