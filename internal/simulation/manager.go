package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/controllers/orphans"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Settings are what an administrator decided for a manager, as far as it matters here.
type Settings struct {
	writer.Manager

	// AmbitNamespace is where it runs.
	AmbitNamespace string
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
}

// Manager are the manager's reconcilers of scopes, in a cluster in memory.
type Manager struct {
	generic.Shared

	scopes    *namespacescope.Reconciler
	templates *template.Reconciler
}

// Manager returns reconcilers with these settings, which somebody looks on. What waits for somebody else to finish is taken to be
// over: the same is done then.
func (s *Scopes) Manager(with *Settings, looks generic.Simulation) *Manager {
	store := s.once.Store()
	applier := s.Applier()
	applier.ReviewOwn = with.IsConfined()

	heard, metrics := changes.New(), report.NewMetrics(prometheus.NewRegistry())
	resources := discovered.New(s.cluster.mapper)
	own := &user{Simulation: s.Simulation}
	shared := generic.Shared{
		Store: store, Watches: read.NewWatches(store, nil, false), Applier: applier, Recorder: silent{}, Metrics: metrics,
		Orphans: &orphans.Reporter{
			Recorder: silent{}, Metrics: metrics, Exists: store.Exists, Namespaced: len(with.Namespaces) > 0,
		},
		Changes: heard, AmbitNamespace: with.AmbitNamespace, Writers: &with.Manager, Now: s.Now, Simulation: looks,
	}

	m := &Manager{
		Shared: shared,
		scopes: &namespacescope.Reconciler{
			Shared: shared, Client: own, Live: own, Quota: namespacescope.NewQuota(), RestartInterval: with.RestartInterval,
			Finder: &waiting.Finder{}, IsClusterScoped: resources.IsClusterScoped,
		},
	}
	shared.Orphans = nil
	m.templates = &template.Reconciler{
		Shared: shared, Client: own, IsMissing: func(client.Object) bool { return false }, Resources: resources,
	}

	return m
}

// Serve reconciles once what stands for a reconcile key. Where a namespace has no scope any more, there is nothing left to do.
func (m *Manager) Serve(ctx context.Context, key string) error {
	serve := m.scopes.Serve
	if key == scope.Cluster {
		serve = m.templates.Reconcile
	} else if has, err := namespacescope.HasScope(ctx, m.scopes.Client, key); err != nil || !has {
		return err
	}

	var err error
	if _, err = serve(ctx, requestFor(key)); err != nil {
		err = fmt.Errorf("namespace %s: %w", key, err)
	}

	return err
}

var _ reconcile.Func = (*namespacescope.Reconciler)(nil).Serve
