package group

import (
	"context"
	"errors"
	"time"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// snapshot is what is known, and the targets of each group of the namespace.
type snapshot struct {
	install.Snapshot

	targets []install.Targets
}

// begin records what is known, and notifies the neighbours of changes.
func (p *state) begin(ctx context.Context) error {
	w := p.Reconciler.snapshot(p.found, p.facts)
	p.confine(ctx, w)
	err := errors.Join(p.findRivals(ctx, w), p.notifyRivals(ctx, p.found.namespace, w))

	p.snapshot, p.as = w, p.installer(p.found.namespace, w)

	return err
}

// complete adds to facts what the store does not know. What rules say of custom resources is not looked up: whoever may write a
// ClusterServiceVersion may name any number.
func (p *state) complete(f *facts.Facts) {
	f.ClusterScoped = reach.BuiltInClusterScoped()
	f.ClusterBindings = p.Store.ClusterBindings(p.key, nil, p.IsClusterScoped)
}

func (r *Reconciler) snapshot(found *resources, f *facts.Facts) *snapshot {
	began := time.Now() // By the clock of whoever asks.
	w := &snapshot{Snapshot: install.Snapshot{
		Namespace: found.namespace, CSVs: found.csvs, CRDs: found.crds, Kubernetes: r.Kubernetes,
		Serves:    func(group, version, kind string) bool { return r.Serves(began, group, version, kind) },
		Installed: *f.Installed, Holding: holding(found.namespace, f), Configs: found.configs, Certificates: map[string]string{},
		AmbitNamespace: r.AmbitNamespace, IsClusterScoped: r.IsClusterScoped,
	}}

	for _, g := range found.groups {
		group := groupOf(g)

		targets := group.ResolveNamed()
		if r.Confined == nil {
			targets = group.Resolve(f.Namespaces, r.AmbitNamespace)
		}

		w.Groups, w.targets = append(w.Groups, group), append(w.targets, targets)
	}

	if len(w.Groups) == 1 {
		w.Group = &install.TargetedGroup{Group: w.Groups[0], Targets: w.targets[0].Namespaces}
		w.Problem = w.targets[0].Problem
	}

	return w
}

func groupOf(g *operatorsv1.OperatorGroup) *install.Group {
	out := &install.Group{
		Namespace: g.Namespace, Name: g.Name, UID: string(g.UID), Created: g.CreationTimestamp.Time,
		Named: g.Spec.TargetNamespaces, Account: g.Spec.ServiceAccountName, Static: g.Spec.StaticProvidedAPIs,
		Provided: install.ParseAPIs(g.Annotations[operatorsv1.ProvidedAPIsAnnotation]),
	}
	if g.Spec.Selector != nil {
		out.Selector = g.Spec.Selector.Raw
	}

	return out
}
