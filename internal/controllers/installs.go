package controllers

import (
	"context"
	"slices"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/aside"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/kinds"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// checkInterval is how often Ambit checks whether OLM's kinds are its own to serve, or which version the API server has, until it
// knows.
const checkInterval = 2 * time.Second

// installs serves OLM's kinds once they are Ambit's to serve. Nothing of them is read before that.
type installs struct {
	manager manager.Manager
	wrap    Wrap
	asking  discovery.ServerVersionInterface
	known   *kinds.Kinds
	// ours says whether they are Ambit's to serve, and decided signals that it may have another answer now.
	ours     func() bool
	decided  <-chan struct{}
	groups   *group.Reconciler
	catalogs *catalog.Reconciler
}

// Start reads OLM's kinds, and starts the controllers, when there is something to do for them. What Ambit installed has to be
// revoked whoever serves these kinds.
func (i *installs) Start(ctx context.Context) error {
	if !i.until(ctx, func() bool { return i.ours() || len(i.groups.Store.Installed()) > 0 }) {
		return nil
	}

	var known bool
	if i.groups.Kubernetes, known = versionOf(ctx, i.asking); !known {
		return nil
	}

	ended := make(chan error, 1)
	go func() { ended <- i.known.Start(ctx) }()

	if err := i.startGroups(); err != nil {
		return err
	}

	i.groups.Ask(defined(ctx, i.manager.GetCache()))

	lacks := func(kind client.Object) bool { return !i.known.WaitFor(ctx, kind) }

	// Whoever installs what is subscribed to needs all of the kinds.
	if i.until(ctx, i.ours) && !slices.ContainsFunc(olmKinds(), lacks) {
		log.FromContext(ctx).Info("Serving OperatorGroups and ClusterServiceVersions")

		if err := addCatalogs(i.manager, i.wrap, i.known, i.catalogs); err != nil {
			return err
		}
	}

	return <-ended
}

// until waits until something is so. It returns false when the context ends before.
func (i *installs) until(ctx context.Context, isSo func() bool) bool {
	for !isSo() {
		select {
		case <-ctx.Done():
			return false
		case <-i.decided:
		case <-time.After(checkInterval):
		}
	}

	return true
}

// versionOf is the version of the API server. One that cannot be reached now is asked again: whatever else is served must not end
// because of that. It returns false when the context ends before.
func versionOf(ctx context.Context, asking discovery.ServerVersionInterface) (version string, known bool) {
	err := wait.PollUntilContextCancel(ctx, checkInterval, true, func(context.Context) (bool, error) {
		info, err := asking.ServerVersion()
		if err == nil {
			version = info.GitVersion
		}

		return err == nil, nil
	})

	return version, err == nil
}

// groupKinds are those of OLM's kinds that say what is installed, and for whom.
func groupKinds() []client.Object {
	return []client.Object{&operatorsv1.OperatorGroup{}, scope.NewOLM(scope.KindCSV)}
}

// olmKinds are all of OLM's kinds that Ambit serves.
func olmKinds() []client.Object { return append(groupKinds(), catalog.Kinds()...) }

// groupSources have these kinds reconciled.
func groupSources(known *kinds.Kinds, r *group.Reconciler) []changes.Source {
	return []changes.Source{
		known.Source(&operatorsv1.OperatorGroup{}, group.Changed(r.Changes, r.Groups.Gone)),
		known.Source(scope.NewOLM(scope.KindCSV), group.Changed(r.Changes, r.Quota.Gone)),
	}
}

// startGroups starts the controller of what is installed.
func (i *installs) startGroups() error {
	r := i.groups
	sources := append(groupSources(i.known, r),
		i.known.Source(scope.NewOLM(olmv1alpha1.SubscriptionKind), group.Changed(r.Changes, r.Subscriptions.Gone)),
		source.TypedKind[client.Object](i.manager.GetCache(), &apiextensionsv1.CustomResourceDefinition{},
			ofDefinitions(group.ToAll(r.Changes, r.Store, i.known))))

	inner := aside.New(i.wrap(scope.Installs, r), r.Changes)
	_, err := add(i.manager, scope.Installs, inner, namespacesAtOnce, r.Changes, sources)

	// What was read before this was for nobody. Of some of it, nothing may be left in its namespace that would ask for a plan.
	for _, key := range r.Store.Installed() {
		r.Changes.KeyChanged(key)
	}

	return err
}
