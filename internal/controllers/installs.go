package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// checkInterval is how often Ambit checks whether OLM's kinds are installed, and Ambit's to serve, until they are.
const checkInterval = 2 * time.Second

// installs starts what serves OLM's kinds once they are Ambit's to serve, and their definitions are there: a watch of a kind
// that the API server does not know would fail forever.
type installs struct {
	manager manager.Manager
	ours    func() bool
	// made are the keys of which something is there that Ambit installed: it has to be revoked whoever serves these kinds.
	made func() []scope.Key
	// decided signals that ours may have another answer now.
	decided <-chan struct{}
	// report is called for each definition with whether it is missing, while there is anything to do for these kinds: see wanted.
	report func(definition string, missing bool)
	// reported are the definitions of which the log says that they are missing.
	reported map[string]bool
	// gone says that there are no ClusterServiceVersions, since their definition is known to be missing: what was installed for them
	// is to be revoked all the same.
	gone func() bool
	// groups starts the controller of what is installed, which follows OLM's kinds if they are served; follow has it do so later.
	groups func(kubernetes string, served bool) error
	follow func() error
	// catalogs starts the controller of what is subscribed to.
	catalogs func() error
	// revokes says that the controller was started, and follows that it follows OLM's kinds.
	revokes, follows bool
}

// Start waits for the definitions, starts the controllers, and returns.
func (i *installs) Start(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(i.manager.GetConfig())
	if err != nil {
		return fmt.Errorf("making the client that asks for the version: %w", err)
	}

	i.reported = map[string]bool{}

	for {
		ours := i.ours()
		wanted, missing := i.wanted(ctx, ours)

		if served := !anyOf(missing, forGroups()); wanted && (served || i.gone()) {
			if err := i.begin(client, served); err != nil {
				return err
			}
		}

		if i.follows && ours && !anyOf(missing, forCatalogs()) {
			log.FromContext(ctx).Info("Serving OperatorGroups and ClusterServiceVersions")

			return i.catalogs()
		}

		select {
		case <-ctx.Done():
			return nil
		case <-i.decided:
		case <-time.After(checkInterval):
		}
	}
}

// begin starts the controller of what is installed, and has it follow OLM's kinds once they are served.
func (i *installs) begin(client discovery.ServerVersionInterface, served bool) error {
	if i.revokes {
		if !served || i.follows {
			return nil
		}

		i.follows = true

		return i.follow()
	}

	version, err := client.ServerVersion()
	if err != nil {
		// An API server that cannot be reached now is asked again: whatever else is served must not end because of that.
		return nil //nolint:nilerr // It is no failure.
	}

	i.revokes, i.follows = true, served

	return i.groups(version.GitVersion, served)
}

// wanted says whether there is anything to do for the kinds, and which of them are missing then.
func (i *installs) wanted(ctx context.Context, ours bool) (bool, map[string]bool) {
	if !ours && len(i.made()) == 0 {
		return false, nil
	}

	return true, i.missing(ctx)
}

// forGroups are the kinds that the controller of what is installed reads, and forCatalogs those that the controller of
// subscriptions reads in addition.
func forGroups() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		operatorsv1.GroupVersion.WithKind("OperatorGroup"), csvKind(),
		olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.SubscriptionKind),
	}
}

func forCatalogs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.InstallPlanKind),
		olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.CatalogSourceKind),
	}
}

func csvKind() schema.GroupVersionKind { return olmv1alpha1.SchemeGroupVersion.WithKind(scope.KindCSV) }

func csvDefinition() string { return definitionOf(csvKind()) }

func definitionOf(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)

	return plural.GroupResource().String()
}

func anyOf(missing map[string]bool, kinds []schema.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return missing[definitionOf(k)] })
}

// missing returns which definitions are not known to be there, and reports those of which the API server says that they are
// not.
func (i *installs) missing(ctx context.Context) map[string]bool {
	now := map[string]bool{}

	for _, kind := range slices.Concat(forGroups(), forCatalogs()) {
		definition := definitionOf(kind)

		_, err := i.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		now[definition] = err != nil

		if err != nil && !meta.IsNoMatchError(err) {
			continue // The API server cannot be asked now.
		}

		if now[definition] && !i.reported[definition] {
			log.FromContext(ctx).Info("A kind of OLM's is missing: what needs it is not served until its CustomResourceDefinition is "+
				"there; everything else is", "definition", definition)
		}

		i.reported[definition] = now[definition]
		i.report(definition, now[definition])
	}

	return now
}

// groupsStarter starts the controller of what is installed.
type groupsStarter struct {
	manager    manager.Manager
	wrap       Wrap
	groups     *group.Reconciler
	defined    *defined
	controller changes.Controller
}

// start starts the controller. While OLM's kinds are not served, it hears of nothing but of what was made for them.
func (g *groupsStarter) start(kubernetes string, served bool) (err error) {
	var sources []changes.Source

	if served {
		if sources, err = g.sources(); err != nil {
			return err
		}
	}

	r := g.groups
	r.Kubernetes = kubernetes
	inner := aside.New(g.wrap(scope.Installs, r), r.Changes)
	g.controller, err = add(g.manager, scope.Installs, inner, namespacesAtOnce, r.Changes, sources)

	// What was read before this was for nobody. Of some of it, nothing may be left in its namespace that would ask for a plan.
	for _, key := range r.Store.Installed() {
		r.Changes.KeyChanged(key)
	}

	return err
}

// follow has the controller follow OLM's kinds, which are served by now.
func (g *groupsStarter) follow() error {
	sources, err := g.sources()
	if err != nil {
		return err
	}

	return watch(g.controller, sources)
}

func (g *groupsStarter) sources() ([]changes.Source, error) {
	g.manager.GetLogger().Info("Following OperatorGroups and ClusterServiceVersions")

	cache, r := g.manager.GetCache(), g.groups
	toAll := ofDefinitions(group.ToAll(r.Changes, r.Store))

	if err := cache.IndexField(context.Background(), scope.NewOLM(scope.KindCSV), group.ByAPI, group.APIs); err != nil {
		return nil, fmt.Errorf("indexing ClusterServiceVersions by what they bring: %w", err)
	}

	g.defined.followed.Store(true)

	subscription := scope.NewOLM(olmv1alpha1.SubscriptionKind)

	return []changes.Source{
		source.TypedKind[client.Object](cache, scope.NewOLM(scope.KindCSV), group.Changed(r.Changes, r.Quota.Gone)),
		source.TypedKind[client.Object](cache, &operatorsv1.OperatorGroup{}, group.Changed(r.Changes, r.Groups.Gone)),
		source.TypedKind[client.Object](cache, subscription, group.Changed(r.Changes, r.Subscriptions.Gone)),
		source.TypedKind[client.Object](cache, &apiextensionsv1.CustomResourceDefinition{}, toAll),
	}, nil
}
