package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// state is one reconciliation of a namespace.
type state struct {
	*Reconciler

	found    *resources
	snapshot *snapshot
	facts    *facts.Facts
	// identity is who writes, and removes who takes permissions away.
	identity, removes apply.Identity

	// members are in the order of found.csvs, and unreadable are the others by how their objects name them.
	members    []member
	unreadable map[string]*unreadable
	// userRoles are what failed of the ClusterRoles for people.
	userRoles []error
	errs      []error
	// propagatedLess says that what was taken from the group goes, whoever is told of it still.
	propagatedLess bool
	// look is when the next certificate has to be looked at; the zero time when there is none.
	look time.Time
	// again says that a write was refused in a way that may change unheard.
	again bool
}

// member is a CSV on its way through a pass.
type member struct {
	csv     *olm.ClusterServiceVersion
	verdict install.Verdict
	// refusal says what was refused, in words, and lacks what the identity misses for all of it.
	refusal string
	lacks   []authority.Place
	// delay says what could not be written or asked for a reason that may pass by itself.
	delay string
	// unready are the targets in which something of its permissions is missing still.
	unready map[string]struct{}
	// planned are the permissions that it is to have; nil where it is to have none.
	planned *plan.ScopePlan
	// unpropagated says that it could not be told of the targets that its group has lost.
	unpropagated bool
}

// serve decides what is installed with which permissions, and makes it so.
func (p *state) serve(ctx context.Context, key string, firstEvent time.Time) (reconcile.Result, error) {
	p.decide(ctx)

	began := p.facts // What operators are told of meanwhile is planned from later ones.

	made, out := p.permissions(ctx)
	if p.propagateLess(ctx) {
		made, out = p.permissions(ctx)
	}

	p.install(ctx)
	p.lookSoon()

	p.Changes.Refuse(key, p.refusedIn(out, key))
	p.Changes.Again(key, p.Applier.PlanAgain(made, began))
	p.Metrics.Applied(made, out, p.Store.Size(key), firstEvent)
	p.Orphans.Report(made, out, began)

	return p.result(out, p.report(ctx, p))
}

// decide says what becomes of each CSV, and what is missing for those that are not installed yet. Nothing is written for one
// that could not be installed in full. For one that is installed, only what is yet to be written can be refused.
func (p *state) decide(ctx context.Context) {
	for _, csv := range p.found.csvs {
		m := member{csv: csv, verdict: p.snapshot.Decide(csv), unready: map[string]struct{}{}}

		for _, withheld := range m.verdict.Withheld {
			m.unready[withheld] = struct{}{}
		}

		if m.verdict.ApplyObjects && !p.snapshot.IsInstalled(csv) {
			p.predict(ctx, &m)
			m.verdict.KeepRBAC = !m.stopped()
		}

		p.members = append(p.members, m)
	}
}

func (p *state) predict(ctx context.Context, m *member) {
	targets := install.Present(p.snapshot.Group.Targets, p.facts.Namespaces)
	lacks, err := p.Applier.Lacks(ctx, p.identity, p.needs(m.csv, targets))

	if nobody, no := errors.AsType[*apply.IdentityError](err); no {
		m.refusal = nobody.Why
	} else if err != nil {
		p.errs = append(p.errs, err)
		m.delay = cmp.Or(m.delay, apply.Message(err))
	}

	if len(lacks) > 0 {
		m.lacks, m.refusal = lacks, install.Refusal(p.identity.String(), m.csv, lacks)
	}

	// A grant is heard of, but perhaps before the API server's own authorizer goes by it.
	p.again = p.again || m.stopped()
}

// writes says whether the objects of a CSV are written in this pass.
func (m *member) writes() bool { return m.verdict.ApplyObjects && m.verdict.KeepRBAC }

// stopped says whether something keeps the objects of a CSV from being written.
func (m *member) stopped() bool { return m.refusal != "" || m.delay != "" }

// scopes are the permissions of the CSVs, and the ClusterRoles of the group.
func (p *state) scopes() []scope.Scope {
	var out []scope.Scope

	for i := range p.members {
		m := &p.members[i]
		if m.verdict.KeepRBAC {
			out = append(out, compile.ClusterServiceVersion(m.csv, compile.Install{
				Targets: p.targets(m), Account: p.snapshot.Group.Account, Listed: p.listed(m.csv),
				Confined: p.Confined != nil,
			}))
		}
	}

	if roles := p.groupRoles(); len(roles) > 0 {
		out = append(out, scope.Scope{
			Owner: install.GroupOwner(p.snapshot.Group.Group), OperatorNamespace: scope.InstallKey(p.found.namespace),
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

func (p *state) groupRoles() []scope.ClusterRole {
	if p.snapshot.Group == nil || p.Confined != nil {
		return nil
	}

	return install.GroupRoles(p.snapshot.Group.Group, p.provided())
}

// provided are the APIs that the sound members bring, or those that a static group was told.
func (p *state) provided() []string {
	if p.snapshot.Group.Static {
		return p.snapshot.Group.Provided
	}

	var apis []string

	for i := range p.members {
		if v := &p.members[i].verdict; v.Phase != olm.CSVPhaseFailed || v.KeepRBAC {
			apis = append(apis, install.Provided(p.members[i].csv)...)
		}
	}

	slices.Sort(apis)

	return slices.Compact(apis)
}

func (p *state) identities(planned *plan.Plan) []apply.Identity {
	out := make([]apply.Identity, len(planned.Scopes))
	for i := range out {
		out[i] = p.identity
	}

	return out
}

// permissions plans the permissions, applies them, and notes what became of them.
func (p *state) permissions(ctx context.Context) (*plan.Plan, *apply.Outcome) {
	planned := plan.New(p.scopes(), p.facts)
	planned.Orphans = slices.DeleteFunc(planned.Orphans, p.keeps)
	out := p.Applier.ApplyWith(ctx, &planned, p.identities(&planned), p.removes)
	p.took(ctx, &planned, out)

	return &planned, out
}

// took notes what became of the permissions. One target without rights keeps no other from being served.
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

		for _, absent := range s.Absent {
			m.unready[absent.Namespace] = struct{}{}
		}

		for _, beyond := range s.Beyond {
			m.unready[beyond] = struct{}{}
		}

		if len(s.Beyond) > 0 {
			m.refusal = cmp.Or(m.refusal, fmt.Sprintf("the operators of namespace %s ask for more than %d Roles and RoleBindings; "+
				"the last %d of the target namespaces are left out", p.found.namespace, plan.MaxObjects, len(s.Beyond)))
		}

		var words []string

		for _, f := range out.Scopes[i].Failures {
			m.unready[f.Change.Namespace] = struct{}{}
			why := install.FailedRole(string(f.Change.Key.Kind), f.Change.ShownName(), apply.Message(f.Err))

			if f.Class == apply.Refused {
				words = append(words, why)
			} else {
				m.delay = cmp.Or(m.delay, why)
			}
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

func (p *state) member(name string) *member {
	i := slices.IndexFunc(p.members, func(m member) bool { return m.csv.Name == name })

	return &p.members[i]
}

// refusedIn are the places in which something was refused, so that a change of rights there is heard.
func (p *state) refusedIn(out *apply.Outcome, key string) map[string]struct{} {
	refused := maps.Clone(out.Refused(key))

	if p.userRolesRefused() {
		refused[""] = struct{}{}
	}

	for i := range p.members {
		if p.members[i].refusal == "" {
			continue
		}

		refused[p.found.namespace] = struct{}{}

		for _, place := range p.members[i].lacks {
			refused[place.Namespace] = struct{}{}
		}
	}

	return refused
}

// result says when to plan again: after a failure that may pass by itself, later each time.
func (p *state) result(out *apply.Outcome, err error) (reconcile.Result, error) {
	err = errors.Join(append(p.errs, err)...)

	failed, transient := out.Failed(nil)
	if err != nil && apply.Classify(err) == apply.Transient {
		return reconcile.Result{}, err
	}

	if transient != nil {
		return reconcile.Result{}, transient
	}

	//nolint:staticcheck // Quiet, with the back-off of the queue.
	return reconcile.Result{Requeue: failed || p.again || err != nil, RequeueAfter: p.lookAfter()}, nil
}
