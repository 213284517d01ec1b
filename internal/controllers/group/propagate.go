package group

import (
	"context"
	"errors"
	"maps"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// propagateWithin is how long permissions wait until the operators' annotations no longer name a target: as long as the API
	// server gives a webhook by default. The administrator of the operators' namespace can prevent the annotation, by what the
	// group's account may do there for example, and must not thereby keep permissions in a namespace that was removed from the
	// group.
	propagateWithin = 10 * time.Second
	// propagateBriefly is the same for a namespace that begins to wait while propagateLong others do, which is half of those that
	// are reconciled at once.
	propagateBriefly = time.Second
	propagateLong    = 8
	// propagateAtOnce is how many operators are annotated at once.
	propagateAtOnce = 16
)

// listed are the namespaces in which a CSV's operator keeps its permissions for now: those that were removed from its group and
// that its annotation still names, until Ambit tried to change the annotation. When all namespaces replace some, nothing was
// removed from the group, and the operator keeps what it has until its annotation names all.
func (p *state) listed(csv *olm.ClusterServiceVersion) []string {
	if p.propagatedLess && !compile.IsEverywhere(p.snapshot.Group.Targets) {
		return nil
	}

	return install.Listed(csv)
}

// propagateLess removes targets that left the group from the operators' annotations, and says whether there were any: what
// operators hold there goes now, whether they could be annotated or not.
func (p *state) propagateLess(ctx context.Context) bool {
	less := collect.Filter(collect.Pointers(p.members), func(m *member) bool {
		return m.verdict.KeepRBAC && install.IsAnnotatedWithMore(m.csv, p.snapshot.Group)
	})
	if len(less) == 0 {
		return false
	}

	limit := propagateWithin
	if p.propagating.Add(1) > propagateLong {
		limit = propagateBriefly
	}
	defer p.propagating.Add(-1)

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	errs, deployments := make([]error, len(less)), make([]map[string]*appsv1.Deployment, len(less))

	// Each is tried, also when the time is over: what is not tried would count as done.
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), propagateAtOnce, len(less), func(i int) {
		deployments[i], errs[i] = p.annotatedPods(ctx, less[i])
	})

	for i, m := range less {
		maps.Copy(p.snapshot.Deployments, deployments[i])

		if errs[i] != nil {
			m.unpropagated = true
			p.stop(m, errs[i])
		}
	}

	p.propagatedLess = true

	// What was written meanwhile is known by now. Where it is not, nothing is deleted that was written since.
	if f, known := p.Facts(p.key); known {
		p.complete(f)
		p.facts = f
	}

	return true
}

// propagate writes the group into the annotations of a CSV and its pods.
func (p *state) propagate(ctx context.Context, m *member) {
	deployments, err := p.annotatedPods(ctx, m)
	maps.Copy(p.snapshot.Deployments, deployments)

	if err != nil {
		p.stop(m, err)
	}
}

// annotatedPods annotates the pods of a CSV with its group and then the CSV, and returns the Deployments that it wrote. The CSV
// comes last, since its annotation shows whether something is left to propagate: a crash in between loses nothing. It changes
// nothing else of the Deployments: those of a CSV that waits for something, or is being replaced, are not written.
func (p *state) annotatedPods(ctx context.Context, m *member) (map[string]*appsv1.Deployment, error) {
	var errs []error

	want, written := p.membership(m), map[string]*appsv1.Deployment{}

	for _, d := range p.snapshot.DeploymentsOf(m.csv) {
		missing := install.Differing(d.Spec.Template.Annotations, want)
		if len(missing) == 0 {
			continue
		}

		annotated, err := p.annotatePods(ctx, d, missing)
		if err != nil {
			errs = append(errs, err)

			continue
		}

		written[d.Name] = annotated
	}

	return written, errors.Join(append(errs, p.annotate(ctx, m))...)
}

// annotate writes the group into the annotations of a CSV.
func (p *state) annotate(ctx context.Context, m *member) error {
	missing := install.Differing(m.csv.Annotations, p.membership(m))
	if len(missing) == 0 {
		return nil
	}

	written := m.csv.DeepCopy()
	if err := p.bounded(ctx, scope.KindCSV, m.csv.Name, func(ctx context.Context) error {
		return p.Applier.Annotate(ctx, p.as.Writes, written, missing)
	}); err != nil {
		return err
	}

	*m.csv = *written
	p.written.Note(m.csv)
	maps.Copy(m.csv.Annotations, missing)

	return nil
}

// membership are the annotations that name the group of a CSV.
func (p *state) membership(m *member) map[string]string {
	targeted := annotatedTargets(p.snapshot.Group, p.facts.Namespaces)

	return install.Membership(m.csv, targeted, func(namespace string) install.Readiness { return p.readiness(m, namespace) })
}
