// Package controllers puts the controllers together and into a manager.
package controllers

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// Wrap replaces the reconciler of a family.
type Wrap func(family scope.Family, r changes.Reconciler) changes.Reconciler

// Add puts every controller into the manager.
func Add(m manager.Manager, s Settings) error {
	return AddWrapped(m, s, func(_ scope.Family, r changes.Reconciler) changes.Reconciler { return r })
}

// AddWrapped is Add with something around each reconciler. Tests call the reconcilers themselves, and have the controllers call
// nothing.
func AddWrapped(m manager.Manager, s Settings, wrap Wrap) error {
	config, dirty := rest.CopyConfig(m.GetConfig()), changes.New()
	if s.Answers != nil {
		s.Answers.onReady(dirty.Answered)
	}

	watcher, err := client.NewWithWatch(config, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making the client that watches: %w", err)
	}

	shared, err := newShared(m, config, watcher, dirty, s)
	if err != nil {
		return err
	}

	scopes, err := readOwnKinds(m, s, shared.Watches, shared.Changes, shared.Metrics)
	if err != nil {
		return err
	}

	if err := addDefaultScope(m, scopes, shared.Applier, s); err != nil {
		return err
	}

	asking, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client for discovery: %w", err)
	}

	served := discovered.NewServed(asking)
	shared.IsClusterScoped = served.IsClusterScoped
	groups := &group.Reconciler{
		Shared: shared, Client: m.GetClient(), Cache: m.GetCache(), Live: m.GetAPIReader(),
		Serves: served.Serves, Ask: served.Ask,
		Quota: s.Remembered.CSVs, Groups: s.Remembered.Groups,
		Subscriptions: s.Remembered.Catalogs.Subscriptions(),
	}

	if len(s.Namespaces) > 0 {
		err = addGroupsWithin(m, wrap, s, groups, asking, served)
	} else {
		err = addClusterWide(m, wrap, watcher, scopes, s, groups, asking)
	}

	if err != nil {
		return err
	}

	finder := waiting.New(config)
	finder.NoClusterRoles = len(s.Namespaces) > 0

	return addNamespaceScopes(m, wrap, scopes, &namespacescope.Reconciler{
		Shared: shared, Client: scopes, Live: m.GetAPIReader(), Quota: s.Remembered.Scopes,
		RestartInterval: s.RestartInterval, FollowGrace: s.FollowGrace, FinishGrace: s.FinishGrace, Finder: finder,
	})
}

// newShared makes what the reconcilers of all kinds work with.
func newShared(
	m manager.Manager, config *rest.Config, watcher client.WithWatch, dirty *changes.Changes, s Settings,
) (generic.Shared, error) {
	options := client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()}
	store := read.NewStore(dirty)
	store.Name(s.Names)
	store.Self(s.User)

	watches := read.NewWatches(store, watcher, len(s.Namespaces) > 0)
	watches.Impersonate = impersonating(config, options)

	applier := apply.New(config, options, store, s.Writes)
	applier.ReviewOwn, applier.Late = len(s.Namespaces) > 0, dirty.KeyChanged
	applier.Authorizations = read.Authorizations

	writers := s.writers()

	var err error
	if watches.ReadAs, err = readersOfMembers(watches.Impersonate, writers); err != nil {
		return generic.Shared{}, err
	}

	metered, recorder := report.NewMetrics(metrics.Registry), report.Limited(m.GetEventRecorder("ambit"))

	return generic.Shared{
		Store: store, Watches: watches, Applier: applier, Writers: writers,
		Recorder: recorder, Metrics: metered, Changes: dirty, AmbitNamespace: s.Namespace,
		Orphans: &report.OrphanReporter{
			Recorder: recorder, Metrics: metered, Scheme: m.GetScheme(), Exists: store.Exists, Namespaced: len(s.Namespaces) > 0,
		},
	}, nil
}

func addWatches(m manager.Manager, watches *read.Watches, scopes *ownKinds) error {
	if err := addTo(m, watches, "the watches"); err != nil {
		return err
	}

	// A kind that is missing delays nothing. A replica that stands by is ready to take over, and has read nothing: what it had read
	// meanwhile could be older than what the one before it went by.
	check := func(*http.Request) error {
		select {
		case <-m.Elected():
			return scopes.listed(watches)
		default:
			return nil
		}
	}

	if err := m.AddReadyzCheck("listed", check); err != nil {
		return fmt.Errorf("adding the check that everything is listed: %w", err)
	}

	return nil
}

func addNamespaceScopes(m manager.Manager, wrap Wrap, scopes *ownKinds, r *namespacescope.Reconciler) error {
	toKey, inner := namespacescope.ToKey(r.Changes, r.Quota), aside.New(wrap(scope.NamespaceScopes, r), r.Changes)

	if scopes.served != nil {
		return addServed(m, scopes.served, r.Changes, inner, toKey)
	}

	sources := sourcesOf(scopes.known, namespacescope.Kinds(), toKey)
	_, err := add(m, scope.NamespaceScopes, inner, namespacesAtOnce, r.Changes, sources)

	return err
}

func addTemplates(m manager.Manager, wrap Wrap, scopes *ownKinds, r *template.Reconciler) error {
	dirty := r.Changes
	toAll := changes.Requesting(dirty, func(context.Context, client.Object) []scope.Key { return []scope.Key{scope.TemplatesKey()} })

	_, err := add(m, scope.Templates, wrap(scope.Templates, r), 1, dirty, sourcesOf(scopes.known, template.Kinds(), toAll))

	return err
}
