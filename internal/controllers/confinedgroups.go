package controllers

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// groupsWithin serves OperatorGroups and ClusterServiceVersions in single namespaces.
type groupsWithin struct {
	manager manager.Manager
	asking  discovery.ServerVersionInterface
	served  *kinds.Namespaces
	groups  *group.Reconciler
	wrap    Wrap
}

// addGroupsWithin adds what serves OLM's kinds in the namespaces of the settings, if the administrator says so: whether OLM
// serves them cannot be read there. No Subscription is served: nothing there can ask who writes the content of a catalog.
func addGroupsWithin(
	m manager.Manager, wrap Wrap, s Settings, r *group.Reconciler, asking discovery.ServerVersionInterface,
	defined *discovered.Served,
) error {
	if s.OperatorGroups != read.ServeAlways {
		return nil
	}

	options := kinds.Options{Changed: r.Changes.EverythingChanged, Missing: r.Metrics.Missing, Log: m.GetLogger()}

	served, err := kinds.NewNamespaces(m, options, s.Remembered.transform, s.User, s.Namespaces, kinds.What{
		Kinds: "OperatorGroups and ClusterServiceVersions",
		Role:  "Role ambit-namespaced-installs of config/rbac/namespaced-installs",
	}, groupKinds())
	if err != nil {
		return fmt.Errorf("making what reads OperatorGroups: %w", err)
	}

	if r.Client, err = client.New(m.GetConfig(), client.Options{
		HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: served, Unstructured: true},
	}); err != nil {
		return fmt.Errorf("making the client of OperatorGroups: %w", err)
	}

	r.Cache, r.Ours = served, func() (bool, bool) { return true, true }
	r.Confined = &group.Confined{Secret: NamesSecret, Served: defined}

	r.Changes.Expect(scope.Installs)

	return addTo(m, &groupsWithin{manager: m, asking: asking, served: served, groups: r, wrap: wrap}, "what serves OperatorGroups")
}

// Start finds out which version the API server has, and serves from then on.
func (w *groupsWithin) Start(ctx context.Context) error {
	var known bool
	if w.groups.Kubernetes, known = versionOf(ctx, w.asking); !known {
		return nil
	}

	inner := aside.New(w.wrap(scope.Installs, w.groups), w.groups.Changes)

	c, err := add(w.manager, scope.Installs, whenOpen(w.served, w.groups.Changes, inner), namespacesAtOnce, w.groups.Changes, nil)
	if err != nil {
		return err
	}

	w.served.OnOpen(func(namespace string, open *kinds.Kinds) error { return w.open(c, namespace, open) })

	return w.served.Start(ctx)
}

// open has the controller watch a namespace whose OperatorGroups can be read.
func (w *groupsWithin) open(c changes.Controller, namespace string, open *kinds.Kinds) error {
	if err := watch(c, groupSources(open, w.groups)); err != nil {
		return err
	}

	w.groups.Changes.KeyChanged(scope.Installs.In(namespace))

	return nil
}
