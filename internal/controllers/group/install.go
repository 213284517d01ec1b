package group

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const kindDeployment = "Deployment"

// install writes what is not a permission: accounts, annotations and Deployments; and removes what has to go. An operator is
// annotated with a namespace after its permissions exist, and starts after both.
func (p *state) install(ctx context.Context) {
	p.installing = true

	p.accounts(ctx)

	for i := range p.members {
		m := &p.members[i]

		switch {
		case m.verdict.DeleteCSV:
			p.remove(ctx, m, scope.KindCSV, m.csv.DeepCopy())
		case m.verdict.RemoveDeployments:
			for _, d := range p.snapshot.DeploymentsOf(m.csv) {
				p.remove(ctx, m, kindDeployment, d.DeepCopy())
			}
		case m.unpropagated: // It was tried in this reconcile.
		case m.writes() && !m.stopped():
			p.operator(ctx, m)
		case m.verdict.KeepRBAC:
			// A target in which the rights were lost is in no annotation; the others are. And a target that was removed from the group
			// leaves the annotations, whatever keeps the rest from being written.
			p.propagate(ctx, m)
		}

		// Whatever kept the rest from being written, a namespace that left the group is left.
		if m.verdict.KeepRBAC && !m.answers {
			p.limitWebhooks(ctx, m)
		}
	}

	if p.Confined != nil {
		return // Nothing that has no namespace was written.
	}

	p.forgetWebhooks(ctx, p.askedWebhooks())
	p.apiRoles(ctx)
}

// remove deletes what is no longer wanted of a CSV, or the CSV itself.
func (p *state) remove(ctx context.Context, m *member, kind string, obj client.Object) {
	err := p.bounded(ctx, kind, obj.GetName(), func(ctx context.Context) error {
		return p.Applier.Remove(ctx, p.as.Deletes, obj)
	})
	if err != nil && apply.Classify(err) == apply.Refused {
		m.undeleted = append(m.undeleted, install.Undeleted(kind, obj.GetName(), apply.Message(err)))
	}

	p.fail(err)
}

func (p *state) accounts(ctx context.Context) {
	// The account of a CSV that is being replaced stays until the CSV is gone.
	for _, account := range p.snapshot.AccountsToWrite(p.holding()) {
		if err := p.put(ctx, account); err != nil {
			for i := range p.members {
				if m := &p.members[i]; m.writes() && !m.stopped() && install.UsesAccount(m.csv, account.GetName()) {
					p.stop(m, err)
				}
			}
		}
	}
}

// stop notes why nothing more is written for a CSV. What may pass by itself is kept for another try, and is no failure of the
// CSV. A refusal is tried again, too: an admission policy, unlike a right, changes without Ambit hearing of it.
func (p *state) stop(m *member, err error) {
	p.again = true
	why := install.Failed(err, apply.Message(err))

	if apply.Classify(err) == apply.Refused {
		m.refusal = cmp.Or(m.refusal, why)

		return
	}

	p.fail(err)
	m.delayed(why, err)
}

// stopInFull is stop, with all that the identity lacks, and not only what was tried.
func (p *state) stopInFull(ctx context.Context, m *member, err error) {
	if p.stop(m, err); apply.IsDenied(err) {
		p.predict(ctx, m)
	}
}

func (p *state) operator(ctx context.Context, m *member) {
	if err := p.annotate(ctx, m); err != nil {
		p.stopInFull(ctx, m, err)

		return
	}

	bundles, err := p.serving(ctx, m)
	if err != nil {
		return
	}

	objects, err := p.snapshot.DeploymentsToWrite(m.csv, m.csv.Annotations)
	if err != nil {
		m.refusal = err.Error() // It stays so until somebody changes something, which a watch reports.

		return
	}

	for _, obj := range objects {
		if err := p.put(ctx, obj); err != nil {
			p.stopInFull(ctx, m, err)

			return
		}

		p.fail(p.snapshot.Wrote(obj))
	}

	for _, d := range p.snapshot.DeploymentsToRemove(m.csv) {
		p.remove(ctx, m, kindDeployment, d.DeepCopy())
	}

	p.answering(ctx, m, bundles)
}
