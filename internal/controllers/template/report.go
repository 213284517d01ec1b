package template

import (
	"context"
	"errors"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// report writes each status that differs, and after that the events that speak of it.
func (r *Reconciler) report(ctx context.Context, all *resources, p *plan.Plan, out *apply.Outcome) error {
	var errs []error

	for i := range p.Scopes {
		n := all.news(p, out, i)

		events := n.events

		if n.differs {
			if err := generic.WriteStatus(ctx, r.Client, n.obj, n.before); err != nil {
				errs = append(errs, err)
				events = n.brought
			} else {
				r.written.Note(n.obj)
			}
		}

		for _, e := range events {
			e.Send(r.Recorder, n.obj)
		}
	}

	r.measure(all)

	return errors.Join(errs...)
}

// measure sets the metrics of the instances that exist, and drops those of others.
func (r *Reconciler) measure(all *resources) {
	names := make([]string, 0, len(all.instances))

	for _, in := range all.instances {
		r.Metrics.Scope(scope.Cluster, in.Name, int(in.Status.BoundNamespaces), all.failed[in.Name], all.failed[in.Name] == 0)
		names = append(names, in.Name)
	}

	r.Metrics.Only(scope.Cluster, names)
}
