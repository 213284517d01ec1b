package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// permissions plans what scopes ask for, and leaves alone what CSVs hold that cannot be read now.
func (p *state) permissions(scopes []scope.Scope) *plan.Plan {
	planned := plan.New(scopes, p.facts)
	planned.Orphans = slices.DeleteFunc(planned.Orphans, p.keeps)

	return &planned
}

// grant applies a plan of permissions, and records the results.
func (p *state) grant(ctx context.Context, planned *plan.Plan) *apply.Outcome {
	out := p.Applier.ApplyWith(ctx, planned, p.identities(planned), p.as.Removes)
	p.took(ctx, planned, out)

	return out
}

// scopes are the permissions of the CSVs, and the ClusterRoles of the group.
func (p *state) scopes() []scope.Scope {
	var out []scope.Scope

	for i := range p.members {
		m := &p.members[i]
		if m.verdict.KeepRBAC {
			out = append(out, compile.ClusterServiceVersion(m.csv, compile.Install{
				Targets: p.there(p.targets(m)), Account: p.snapshot.Group.Account, Listed: p.listed(m.csv),
				Confined: p.Confined != nil,
			}))
		}
	}

	if roles := p.groupRoles(); len(roles) > 0 {
		out = append(out, scope.Scope{
			Owner: install.GroupOwner(p.snapshot.Group.Group), Key: p.key,
			Members: scope.Members{Everywhere: true}, Defines: roles, Delegate: p.snapshot.Group.Account,
		})
	}

	return out
}

// targets are the namespaces in which the operator of a CSV gets permissions.
func (p *state) targets(m *member) []string {
	if m.verdict.Targets != nil {
		return m.verdict.Targets
	}

	return p.snapshot.Group.Targets
}

// there are the targets in which something of an operator can be. A group may name any number of others, and all of its operators
// are for those, so no plan is to hold them.
func (p *state) there(targets []string) []string {
	return collect.Filter(targets, func(name string) bool {
		ns, exists := p.facts.Namespaces[name]

		return name == corev1.NamespaceAll || exists && ns.Closed == ""
	})
}

func (p *state) groupRoles() []scope.ClusterRole {
	if p.snapshot.Group == nil || p.Confined != nil {
		return nil
	}

	return install.GroupRoles(p.snapshot.Group.Group, p.provided())
}

// provided are the APIs that the sound members provide, or those that a static group lists. One that is about to be deleted
// provides nothing any more: where a version that was replaced is applied again, the ClusterRoles of the group would come and go
// with it. One that cannot be read now goes on providing what it did.
func (p *state) provided() []string {
	if p.snapshot.Group.Static {
		return p.snapshot.Group.Provided
	}

	apis := slices.Clone(p.providedBefore())

	for i := range p.members {
		if v := &p.members[i].verdict; !v.DeleteCSV && (v.Phase != olm.CSVPhaseFailed || v.KeepRBAC) {
			apis = append(apis, install.Provided(p.members[i].csv)...)
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(apis)))
}

func (p *state) identities(planned *plan.Plan) []apply.Identity {
	return slices.Repeat([]apply.Identity{p.as.Writes}, len(planned.Scopes))
}

// took notes the result of the permissions. One target without rights keeps no other from being served.
func (p *state) took(ctx context.Context, planned *plan.Plan, out *apply.Outcome) {
	for i := range planned.Scopes {
		s := &planned.Scopes[i]

		if s.Scope.Owner.Kind == scope.KindGroup {
			for _, f := range out.Scopes[i].Failures {
				p.failUserRoles(f.Err)
			}

			continue
		}

		m := p.member(s.Scope.Owner.Name)
		m.planned = s

		for _, beyond := range s.Beyond {
			m.unready[beyond] = max(m.unready[beyond], install.Refused)
		}

		if len(s.Beyond) > 0 {
			m.refusal = cmp.Or(m.refusal, fmt.Sprintf("the operators of namespace %s ask for more than %d Roles and RoleBindings; "+
				"the last %d of the target namespaces are left out", p.found.namespace, plan.MaxObjects, len(s.Beyond)))
		}

		var words []string

		for _, f := range out.Scopes[i].Failures {
			// What is no longer wanted and stays is missing nowhere.
			if f.Class == apply.Refused && (f.Change.Action == plan.Delete || f.Change.Action == plan.Empty) {
				m.undeleted = append(m.undeleted,
					install.Undeleted(string(f.Change.Key.Kind), f.Change.ShownName(), apply.Message(f.Err)))

				continue
			}

			readiness := install.Late
			why := install.FailedRole(string(f.Change.Key.Kind), f.Change.ShownName(), apply.Message(f.Err))

			if f.Class == apply.Refused {
				readiness, words = install.Refused, append(words, why)
			} else {
				m.delayed(why, f.Err)
			}

			m.unready[f.Change.Namespace] = max(m.unready[f.Change.Namespace], readiness)
		}

		if m.refusal != "" || len(words) == 0 {
			continue
		}

		// All that is missing, and not only what was tried.
		if p.predict(ctx, m); m.refusal == "" {
			m.refusal = install.Shorten(words)
		}
	}
}

// delayed notes what could not be written for a reason that may pass by itself. It is late as long as all of it is.
func (m *member) delayed(why string, err error) {
	m.late = errors.Is(err, apply.ErrUnanswered) && (m.late || m.delay == "")
	m.delay = cmp.Or(m.delay, why)
}

// readiness is what a target has of an operator's permissions. One that is being deleted is there still: the operator may have
// work left.
func (p *state) readiness(m *member, target string) install.Readiness {
	ns, exists := p.facts.Namespaces[target]

	switch is := m.unready[target]; {
	case is != install.Ready || target == corev1.NamespaceAll:
		return is
	case !exists:
		return install.Missing
	case ns.Terminating || ns.Closed != "":
		return install.Refused
	default:
		return install.Ready
	}
}
