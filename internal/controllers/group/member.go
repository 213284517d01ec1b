package group

import (
	"cmp"
	"context"
	"errors"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// member is a CSV during a reconcile.
type member struct {
	csv     *olm.ClusterServiceVersion
	verdict install.Verdict
	// refusal says what was refused, in words, and lacks what the identity lacks for all of it.
	refusal string
	lacks   []authority.Place
	// delay says what could not be written or asked for a reason that may pass by itself; late that it is a permission whose write
	// was not answered yet.
	delay string
	late  bool
	// undeleted are the words about what is no longer wanted and the identity may not delete. It keeps nothing from being written.
	undeleted []string
	// unready are the targets in which something of its permissions is missing still.
	unready map[string]install.Readiness
	// planned are the permissions that it is to have; nil where it is to have none.
	planned *plan.ScopePlan
	// unpropagated says that its annotation could not be freed of the targets that its group has lost.
	unpropagated bool
	// answers says that all of it was written, and its webhooks with it.
	answers bool
}

// decide decides what becomes of each CSV, and finds what is missing for those that are not installed yet. Nothing is written for
// one that could not be installed in full. For one that is installed, only what is yet to be written can be refused, and where
// the API server does not say, for one that has begun: what is there would be taken away, and written again a moment later.
func (p *state) decide(ctx context.Context) {
	for _, csv := range p.found.csvs {
		m := member{csv: csv, verdict: p.snapshot.Decide(csv), unready: map[string]install.Readiness{}}

		for _, withheld := range m.verdict.Withheld {
			m.unready[withheld] = install.Refused
		}

		isNew := m.verdict.ApplyObjects && !p.snapshot.IsInstalled(csv)
		if isNew {
			p.predict(ctx, &m)
		}

		// What is missing in the namespaces that can be looked at comes first: all of it is granted at once.
		m.refusal = cmp.Or(m.refusal, p.shutOut(csv))

		if isNew {
			m.verdict.KeepRBAC = m.refusal == "" && (m.delay == "" || p.snapshot.HasBegun(csv))
		}

		p.members = append(p.members, m)
	}
}

func (p *state) predict(ctx context.Context, m *member) {
	targets := install.Present(p.snapshot.Group.Targets, p.facts.Namespaces)

	needs := install.Needs
	if p.Confined != nil {
		needs = install.NeedsConfined
	}

	lacks, err := p.Applier.Lacks(ctx, p.as.Writes, needs(m.csv, m.csv.Namespace, targets))

	if nobody, no := errors.AsType[*apply.IdentityError](err); no {
		m.refusal = nobody.Why
	} else if err != nil {
		p.errs = append(p.errs, err)
		m.delay = cmp.Or(m.delay, apply.Message(err))
	}

	if len(lacks) > 0 {
		m.lacks, m.refusal = lacks, install.Refusal(p.as.Writes.String(), m.csv, lacks)
	}

	// A watch reports a grant, but perhaps before the API server's own authorizer knows it.
	p.again = p.again || m.stopped()
}

// writes says whether the objects of a CSV are written in this reconcile.
func (m *member) writes() bool { return m.verdict.ApplyObjects && m.verdict.KeepRBAC }

// stopped says whether something keeps the objects of a CSV from being written.
func (m *member) stopped() bool { return m.refusal != "" || m.delay != "" }

// holding are the CSVs that hold something.
func (p *state) holding() []*olm.ClusterServiceVersion {
	members := collect.Filter(collect.Pointers(p.members), func(m *member) bool { return m.verdict.KeepRBAC })

	return collect.Map(members, func(m *member) *olm.ClusterServiceVersion { return m.csv })
}

func (p *state) member(name string) *member {
	i := slices.IndexFunc(p.members, func(m member) bool { return m.csv.Name == name })

	return &p.members[i]
}
