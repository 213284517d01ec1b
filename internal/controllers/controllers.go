// Package controllers puts the controllers together and into a manager.
package controllers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/controllers/orphans"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// Settings are what an administrator decides for a manager.
type Settings struct {
	// Namespace is Ambit's own namespace; labels never select it.
	Namespace string
	// Names gives names to copies.
	Names *projected.Names
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// FollowGrace is how long permissions stay in a namespace that left, for readers that follow the list.
	FollowGrace time.Duration
	// FinishGrace is how long a namespace that left keeps what it has while custom resources there wait for a finalizer.
	FinishGrace time.Duration
	// DefaultServiceAccount is the delegate of scopes that name none; empty means Ambit itself.
	DefaultServiceAccount string
	// NeedDelegate refuses scopes for which no service account is named, neither by themselves nor by default.
	NeedDelegate bool
	// Namespaces are the namespaces whose scopes are served; empty means all. With namespaces, nothing is read cluster-wide.
	Namespaces []string
	// User is the name of the user that Ambit runs as; empty when it is not known.
	User string
	// DefaultScope makes a scope in Namespace, if it has none and is served.
	DefaultScope bool
	// Writes bounds the writes under way at once.
	Writes int
	// Remembered is what is kept in memory; the same for Cache and for Add.
	Remembered *Remembered
	// OperatorGroups says when OLM's kinds are served. With namespaces, where it cannot be known whether OLM serves them, that is
	// when they always are: OperatorGroups and ClusterServiceVersions of these.
	OperatorGroups read.Serving
	// OLMNamespaces are where OLM's own controllers are looked for; empty means read.OLMNamespaces.
	OLMNamespaces []string
}

const (
	// namespacesAtOnce is how many namespaces are reconciled at once; the writes of each are parallel by themselves.
	// One that hangs, or computes for long, keeps its place for itself.
	namespacesAtOnce = 16
	// firstRetry and lastRetry bound the time until something that failed is tried again without a change.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 2 * time.Minute
	// untilListed is how long a controller waits for its kinds: as long as it takes. One that cannot be listed must not end the
	// manager, which has others to serve.
	untilListed = 10 * 365 * 24 * time.Hour
)

// Scheme returns a scheme with every kind that Ambit reads or writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorv1.AddToScheme, namespacescopev1alpha1.AddToScheme,
		// OLM's v1alpha1 and Ambit's are one group and version, with different kinds.
		operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme, olmv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}

	return s, nil
}

func addWatches(m manager.Manager, watches *read.Watches, scopes *ownKinds) error {
	if err := m.Add(watches); err != nil {
		return fmt.Errorf("adding the watches: %w", err)
	}

	// Also of one that stands by: it takes over with what it knows. A kind that is missing holds nothing up.
	if err := m.AddReadyzCheck("listed", func(*http.Request) error { return scopes.listed(watches) }); err != nil {
		return fmt.Errorf("adding the check that everything is listed: %w", err)
	}

	return nil
}

func addDefaultScope(m manager.Manager, scopes *ownKinds, s Settings) error {
	if !s.DefaultScope || len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, s.Namespace) {
		return nil
	}

	if err := m.Add(&defaultScope{
		scopes: scopes, namespace: s.Namespace, others: len(s.Namespaces) > 1,
	}); err != nil {
		return fmt.Errorf("adding the default scope: %w", err)
	}

	return nil
}

// Wrap replaces the reconciler of a controller, by the controller's name.
type Wrap func(controller string, r reconcile.Reconciler) reconcile.Reconciler

// Add puts every controller into the manager.
func Add(m manager.Manager, s Settings) error {
	return AddWrapped(m, s, func(_ string, r reconcile.Reconciler) reconcile.Reconciler { return r })
}

// AddWrapped is Add with something around each reconciler. Tests call the reconcilers themselves, and have the controllers call
// nothing.
func AddWrapped(m manager.Manager, s Settings, wrap Wrap) error {
	config := rest.CopyConfig(m.GetConfig())

	watcher, err := client.NewWithWatch(config, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making the client that watches: %w", err)
	}

	shared, err := newShared(m, config, watcher, s)
	if err != nil {
		return err
	}

	scopes, err := readOwnKinds(m, s, shared.Watches, shared.Changes, shared.Metrics)
	if err != nil {
		return err
	}

	resources := discovered.New(m.GetRESTMapper())
	groups := &group.Reconciler{
		Shared: shared, Client: m.GetClient(), Cache: m.GetCache(), Live: m.GetAPIReader(), Mapper: m.GetRESTMapper(),
		Resources: resources, NeedDelegate: s.NeedDelegate, Room: s.Remembered.CSVs, Groups: s.Remembered.Groups,
		Subscriptions: s.Remembered.Catalogs.Subscriptions(),
	}

	if len(s.Namespaces) > 0 {
		err = addGroupsWithin(m, wrap, shared.Changes, s, groups)
	} else {
		err = addClusterWide(m, wrap, watcher, scopes, s, groups)
	}

	if err != nil {
		return err
	}

	looker := waiting.New(config)
	looker.NoClusterRoles = len(s.Namespaces) > 0

	return addNamespaceScopes(m, wrap, shared.Changes, scopes, &namespacescope.Reconciler{
		Shared: shared, Client: scopes, Live: m.GetAPIReader(), Room: s.Remembered.Scopes,
		OwnUser: s.User, Namespaces: s.Namespaces, Installs: s.OperatorGroups == read.ServeAlways,
		RestartInterval: s.RestartInterval, FollowGrace: s.FollowGrace, FinishGrace: s.FinishGrace, Looker: looker,
		DefaultDelegate: s.DefaultServiceAccount, NeedDelegate: s.NeedDelegate, IsClusterScoped: resources.IsClusterScoped,
	})
}

// newShared makes what the reconcilers of all kinds work with.
func newShared(m manager.Manager, config *rest.Config, watcher client.WithWatch, s Settings) (generic.Shared, error) {
	options := client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()}
	heard := changes.New()
	store := read.NewStore(heard)
	store.Name(s.Names)

	watches := read.NewWatches(store, watcher, len(s.Namespaces) > 0)
	watches.Impersonate = impersonating(config, options)

	var err error
	if watches.ReadAs, err = readersOfMembers(watches.Impersonate, s); err != nil {
		return generic.Shared{}, err
	}

	metered, recorder := report.NewMetrics(metrics.Registry), m.GetEventRecorder("ambit")

	return generic.Shared{
		Store: store, Watches: watches, Applier: newApplier(config, options, store, heard, s),
		Recorder: recorder, Metrics: metered, Changes: heard, AmbitNamespace: s.Namespace,
		Orphans: &orphans.Reporter{
			Recorder: recorder, Metrics: metered, Exists: store.Exists, Namespaced: len(s.Namespaces) > 0,
		},
	}, nil
}

// addClusterWide adds what cannot be served, or not in full, where nothing may be read cluster-wide.
func addClusterWide(
	m manager.Manager, wrap Wrap, watcher client.WithWatch, scopes *ownKinds, s Settings, groups *group.Reconciler,
) error {
	shared := groups.Shared
	shared.Orphans = nil // Where Ambit writes for templates at all, it takes away what is left of them.

	if err := addTemplates(m, wrap, groups.Changes, scopes, &template.Reconciler{
		Shared: shared, Client: scopes, IsMissing: scopes.known.IsMissing, Resources: groups.Resources, NeedDelegate: s.NeedDelegate,
	}); err != nil {
		return err
	}

	return addOperatorGroups(m, wrap, watcher, groups.Changes, s, groups, &catalog.Reconciler{
		Client: groups.Client, Cache: m.GetCache(), Live: groups.Live, Store: groups.Store, Watches: groups.Watches,
		Applier: groups.Applier, Recorder: groups.Recorder, Changes: groups.Changes, Global: s.Namespace,
		NeedDelegate: s.NeedDelegate, Rooms: s.Remembered.Catalogs,
	})
}

func newApplier(
	config *rest.Config, options client.Options, store *read.Store, heard *changes.Changes, s Settings,
) *apply.Applier {
	a := apply.New(config, options, store, s.Writes)
	a.ReviewOwn, a.NeedDelegate, a.Late = len(s.Namespaces) > 0, s.NeedDelegate, heard.KeyChanged
	a.Authorizations = read.Authorizations

	return a
}

// addOperatorGroups adds what serves OLM's kinds. Also where Ambit never serves them, what it made for them is revoked.
func addOperatorGroups(
	m manager.Manager, wrap Wrap, watcher client.WithWatch, heard *changes.Changes, s Settings,
	groups *group.Reconciler, catalogs *catalog.Reconciler,
) error {
	decided := make(chan struct{}, 1)

	ownership := read.NewOwnership(watcher, s.OperatorGroups, s.OLMNamespaces...)
	ownership.OnChange(func() {
		ours, known := ownership.Ours()
		m.GetLogger().Info("Whose OLM's kinds are has changed", "ours", ours, "known", known,
			"controllersOfOLM", ownership.Controllers())
		heard.EverythingChanged()

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

	if err := m.Add(ownership); err != nil {
		return fmt.Errorf("adding the watch of OLM's controllers: %w", err)
	}

	if s.OperatorGroups != read.ServeNever {
		index := read.NewGroupIndex(watcher)
		index.Global = s.Namespace

		if err := m.Add(&groupIndex{client: m.GetClient(), known: index}); err != nil {
			return fmt.Errorf("adding the index of OperatorGroups: %w", err)
		}
	}

	if err := m.Add(&installs{
		manager: m, ours: ours, made: groups.Store.HoldsInstalls, decided: decided, tell: groups.Metrics.Missing,
		groups: func(kubernetes string) error {
			groups.Kubernetes = kubernetes

			return addGroups(m, wrap, heard, groups)
		},
		catalogs: func() error { return addCatalogs(m, wrap, heard, catalogs) },
	}); err != nil {
		return fmt.Errorf("adding what serves OperatorGroups: %w", err)
	}

	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func addNamespaceScopes(
	m manager.Manager, wrap Wrap, heard *changes.Changes, scopes *ownKinds, r *namespacescope.Reconciler,
) error {
	toKey := namespacescope.ToKey(r.Room)

	if scopes.served != nil {
		return addServed(m, wrap, heard, scopes.served, r, toKey)
	}

	_, err := add(m, "home", wrap("home", r), namespacesAtOnce, heard.Start, sourcesOf(scopes.known, namespacescope.Kinds(), toKey))

	return err
}

func addTemplates(m manager.Manager, wrap Wrap, heard *changes.Changes, scopes *ownKinds, r *template.Reconciler) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: scope.Cluster}}}
	})

	_, err := add(m, "template", wrap("template", r), 1, heard.StartCluster, sourcesOf(scopes.known, template.Kinds(), toAll))

	return err
}

// add makes a controller that is asked by what is heard and by its resources.
func add(
	m manager.Manager, name string, r reconcile.Reconciler, atOnce int, heard func(queue), sources []source.Source,
) (controller.Controller, error) {
	c, err := controller.New(name, m, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: atOnce,
		RateLimiter: newBackOff(), CacheSyncTimeout: untilListed,
	})
	if err != nil {
		return nil, fmt.Errorf("making the controller: %w", err)
	}

	hearing := source.Func(func(_ context.Context, q queue) error {
		heard(q)

		return nil
	})

	return c, watch(c, append(sources, hearing))
}

func sourcesOf(known *kinds.Kinds, objects []client.Object, handle handler.EventHandler) []source.Source {
	sources := make([]source.Source, 0, len(objects))

	for _, object := range objects {
		sources = append(sources, known.Source(object, handle))
	}

	return sources
}

func watch(c controller.Controller, sources []source.Source) error {
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}

	return nil
}
