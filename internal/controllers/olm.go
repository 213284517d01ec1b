package controllers

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// addClusterWide adds what cannot be served, or not in full, where nothing may be read cluster-wide.
func addClusterWide(
	m manager.Manager, wrap Wrap, watcher client.WithWatch, scopes *ownKinds, s Settings, groups *group.Reconciler,
	asking discovery.ServerVersionInterface,
) error {
	shared := groups.Shared
	shared.Orphans = nil // Where Ambit writes for templates at all, it takes away what is left of them.

	if err := addTemplates(m, wrap, scopes, &template.Reconciler{
		Shared: shared, Client: scopes, IsMissing: scopes.known.IsMissing,
	}); err != nil {
		return err
	}

	return addOperatorGroups(m, wrap, watcher, s, asking, groups, &catalog.Reconciler{
		Shared: shared, Client: groups.Client, Live: groups.Live, Quotas: s.Remembered.Catalogs,
	})
}

// addOperatorGroups adds what serves OLM's kinds. Also where Ambit never serves them, what it made for them is revoked.
func addOperatorGroups(
	m manager.Manager, wrap Wrap, watcher client.WithWatch, s Settings, asking discovery.ServerVersionInterface,
	groups *group.Reconciler, catalogs *catalog.Reconciler,
) error {
	decided := make(chan struct{}, 1)

	ownership := read.NewOwnership(watcher, s.OperatorGroups, s.OLMNamespaces...)
	ownership.OnChange(func() {
		ours, known := ownership.Ours()
		m.GetLogger().Info("Whose OLM's kinds are has changed", "ours", ours, "known", known,
			"controllersOfOLM", ownership.Controllers())
		groups.Changes.EverythingChanged()

		select {
		case decided <- struct{}{}:
		default: // It is about to look in any case.
		}
	})

	ours := func() bool {
		ours, _ := ownership.Ours()

		return ours
	}
	groups.Ours, catalogs.Ours = ownership.Ours, ours

	if err := addTo(m, ownership, "the watch of OLM's controllers"); err != nil {
		return err
	}

	if s.OperatorGroups != read.ServeNever {
		index := read.NewGroupIndex(watcher)
		index.Global = s.Namespace
		groups.Index, catalogs.Index = index, index

		if err := addTo(m, &groupIndex{client: m.GetClient(), known: index}, "the index of OperatorGroups"); err != nil {
			return err
		}
	}

	known, err := kinds.New(m, kinds.Options{
		Cache: m.GetCache(), Definition: groups.Watches.Definition, Changed: groups.Changes.EverythingChanged,
		Missing: groups.Metrics.Missing, Log: m.GetLogger(),
	}, olmKinds()...)
	if err != nil {
		return fmt.Errorf("making what reads OLM's kinds: %w", err)
	}

	for _, definition := range known.Definitions() {
		groups.Watches.FollowDefinition(definition, known.Wake)
	}

	for field, values := range group.Indexes() {
		known.Index(scope.NewOLM(scope.KindCSV), field, values)
	}

	groups.Cache, catalogs.Cache = known, known

	return addTo(m, &installs{
		manager: m, wrap: wrap, asking: asking, known: known, ours: ours, decided: decided, groups: groups, catalogs: catalogs,
	}, "what serves OperatorGroups")
}
