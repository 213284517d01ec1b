package controllers

import (
	"context"
	"fmt"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// lookAgain is how often it is looked whether OLM's kinds are installed, and Ambit's to serve, until they are.
const checkInterval = 2 * time.Second

// installs starts what serves OLM's kinds once they are Ambit's to serve, and their definitions are there: a watch of a kind
// that the API server does not know would fail for ever.
type installs struct {
	manager manager.Manager
	ours    func() bool
	// made says whether something is there that Ambit installed: it has to be revoked whoever serves these kinds.
	made func() bool
	// decided says that ours may answer otherwise now.
	decided <-chan struct{}
	// groups starts the controller of what is installed, and catalogs that of what is subscribed to.
	groups   func(kubernetes string) error
	catalogs func() error
}

// Start waits for the definitions, starts the controllers, and returns.
func (i *installs) Start(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(i.manager.GetConfig())
	if err != nil {
		return fmt.Errorf("making the client that asks for the version: %w", err)
	}

	revokes := false

	for {
		// An API server that cannot be reached now is asked again: whatever else is served does not end for this.
		if !revokes && (i.ours() || i.made()) && i.areServed() {
			if version, err := client.ServerVersion(); err == nil {
				log.FromContext(ctx).Info("Following OperatorGroups and ClusterServiceVersions")

				if err := i.groups(version.GitVersion); err != nil {
					return err
				}

				revokes = true
			}
		}

		if revokes && i.ours() {
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

func (i *installs) areServed() bool {
	for kind, version := range map[schema.GroupKind]string{
		operatorsv1.GroupVersion.WithKind("OperatorGroup").GroupKind():                     operatorsv1.GroupVersion.Version,
		olmv1alpha1.SchemeGroupVersion.WithKind(scope.KindCSV).GroupKind():                 olmv1alpha1.SchemeGroupVersion.Version,
		olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.SubscriptionKind).GroupKind():  olmv1alpha1.SchemeGroupVersion.Version,
		olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.InstallPlanKind).GroupKind():   olmv1alpha1.SchemeGroupVersion.Version,
		olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.CatalogSourceKind).GroupKind(): olmv1alpha1.SchemeGroupVersion.Version,
	} {
		if _, err := i.manager.GetRESTMapper().RESTMapping(kind, version); err != nil {
			return false
		}
	}

	return true
}

func addGroups(m manager.Manager, heard *changes.Changes, r *group.Reconciler) error {
	c, err := controller.New("operatorgroup", m, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: namespacesAtOnce,
		RateLimiter: newBackOff(),
	})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}

	cache := m.GetCache()
	if err := cache.IndexField(context.Background(), install.NewObject(), group.ByAPI, group.APIs); err != nil {
		return fmt.Errorf("indexing ClusterServiceVersions by what they bring: %w", err)
	}

	return watch(c, []source.Source{
		source.Func(func(_ context.Context, q queue) error {
			heard.StartInstalls(q)

			return nil
		}),
		source.Kind[client.Object](cache, install.NewObject(), group.Changed(heard, r.Room)),
		source.Kind[client.Object](cache, &operatorsv1.OperatorGroup{}, group.Changed(heard, nil)),
		source.Kind[client.Object](cache, group.NewSubscription(), group.Changed(heard, nil)),
		source.Kind[client.Object](cache, &apiextensionsv1.CustomResourceDefinition{}, group.ToAll(r.Store)),
	})
}

// withoutSchema keeps of a definition what the controllers look at.
func withoutSchema(obj any) (any, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return obj, nil
	}

	crd.ManagedFields, crd.Annotations, crd.Spec.Conversion = nil, nil, install.CutConversion(crd.Spec.Conversion)

	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		*v = apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name, Served: v.Served, Storage: v.Storage}
	}

	return crd, nil
}
