package group

import (
	"cmp"
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/install"
)

// apiRoles makes the ClusterRoles by which users get access to what the operators provide, and restores those of them that
// Ambit made, as far as that gives nothing. The status reports what the group's account may not write; that prevents neither
// operators from running nor the other ClusterRoles from being written.
func (p *state) apiRoles(ctx context.Context) {
	written := map[string]struct{}{}

	for i := range p.members {
		m := &p.members[i]
		if !m.verdict.KeepRBAC || m.verdict.DeleteCSV {
			continue
		}

		for _, role := range p.snapshot.APIRoles(m.csv) {
			live, role := p.apiRole(role)
			if role == nil {
				continue
			}

			// Of two versions of an operator, each brings the API.
			if _, done := written[role.Name]; !done {
				written[role.Name] = struct{}{}

				p.failUserRoles(p.Applier.PutAggregated(ctx, p.as.Writes, live, role))
			}
		}
	}
}

// apiRole is what to write for a ClusterRole, nil for nothing, and what is there. One of somebody else's stays as it is.
func (p *state) apiRole(want *rbacv1.ClusterRole) (live, role *rbacv1.ClusterRole) {
	found, exists := p.facts.ClusterRoles[want.Name]

	switch {
	case !exists:
		return nil, want
	case found.Aggregated == nil:
		return nil, nil
	case found.Aggregated.Name == "":
		p.userRoles = append(p.userRoles, &install.LeftOutError{Name: want.Name})

		return nil, nil
	case install.HasShrunk(found.Aggregated, want):
		p.userRoles = append(p.userRoles, &install.ShrunkError{Name: want.Name})
	}

	return found.Aggregated, install.Corrected(found.Aggregated, want)
}

// failUserRoles notes the result of a user ClusterRole. A conflict is not reported: another group that provides the same API
// wrote it, or somebody else did, and the watch reports that.
func (p *state) failUserRoles(err error) {
	if err == nil {
		return
	}

	p.again = true

	switch apply.Classify(err) {
	case apply.Conflict:
		return
	case apply.Transient:
		p.fail(err)
	case apply.Refused, apply.Gone, apply.Dangling:
	}

	p.userRoles = append(p.userRoles, err)
}

// userRolesProblem says why user ClusterRoles are not as they should be, with everything that the identity lacks.
func (p *state) userRolesProblem() string {
	if p.Confined != nil {
		return p.userRolesHere()
	}

	var (
		words   []string
		missing *apply.MissingError
	)

	for _, err := range p.userRoles {
		lacks, ok := errors.AsType[*apply.MissingError](err)

		switch {
		case !ok:
			words = append(words, apply.Message(err))
		case missing == nil:
			missing = &apply.MissingError{Identity: lacks.Identity, Rules: lacks.Rules}
		default:
			missing.Rules = slices.Concat(missing.Rules, lacks.Rules)
		}
	}

	if missing != nil {
		missing.Rules = authority.Merge(missing.Rules)
		// What is handed out can be more than there is room for: the right to write comes first.
		slices.SortStableFunc(missing.Rules, func(a, b rbacv1.PolicyRule) int {
			return cmp.Compare(slices.Index(b.APIGroups, rbacv1.GroupName), slices.Index(a.APIGroups, rbacv1.GroupName))
		})

		words = append(words, missing.Error())
	}

	slices.Sort(words)

	return install.Shorten(slices.Compact(words))
}
