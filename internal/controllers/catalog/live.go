package catalog

import (
	"context"
	"fmt"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

// findUninstalled asks the API server for the versions that InstallPlans have installed and that the cache does not know: one
// that is there will reach the cache soon.
func (p *state) findUninstalled(ctx context.Context) {
	for _, t := range p.targets {
		if t.plan == nil || !t.plan.isComplete() {
			continue
		}

		csv := olmv1alpha1.SchemeGroupVersion.WithKind(olmv1alpha1.ClusterServiceVersionKind)

		live, err := p.readLive(ctx, csv, p.found.namespace, t.carried())
		if p.fail(err); err == nil && live == nil {
			// An InstallPlan is carried out once: whoever deletes what it installed, and keeps the Subscription, does not get it back
			// unasked.
			t.problem(catalog.ReasonUninstalled, fmt.Sprintf("ClusterServiceVersion %s was installed by InstallPlan %s and has been "+
				"deleted; to install it again, delete the InstallPlan", t.carried(), t.plan.typed.Name))
		} else {
			t.waits = true
		}
	}
}

// findChanged asks the API server for the catalogs that InstallPlans are about to be made of. Ambit may hear of a Subscription
// before it hears of what was written just before that, such as the catalog from the same file. Nothing is made of a catalog that
// was another one by then: the watch reports it soon.
func (p *state) findChanged(ctx context.Context) {
	for _, t := range p.targets {
		if t.missing == nil {
			continue
		}

		s := p.sourceAt(types.NamespacedName{Namespace: t.steps.SourceNamespace, Name: t.steps.Source})

		isKnown, err := p.isKnown(ctx, s)
		if p.fail(err); !isKnown {
			t.missing = nil
		}
	}
}

// isKnown says whether a CatalogSource and its ConfigMap are what was read of them.
func (p *state) isKnown(ctx context.Context, s *source) (bool, error) {
	live, err := p.readLive(ctx, olmv1alpha1.SchemeGroupVersion.WithKind(sourceKind), s.Namespace, s.Name)
	if live == nil || live.GetUID() != s.UID || live.GetGeneration() != s.Generation {
		return false, err
	}

	live, err = p.readLive(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"), s.Namespace, s.ConfigMap)

	return live != nil && live.GetUID() == s.Seen.UID && live.GetResourceVersion() == s.Seen.ResourceVersion, err
}

// findDefinitions reads the CustomResourceDefinitions that are about to be written, which the cache holds in part only.
func (p *state) findDefinitions(ctx context.Context) {
	if _, why := p.group(); why != "" {
		return
	}

	for _, t := range p.targets {
		if !t.runs || !t.plan.typed.Spec.Approved {
			continue
		}

		t.definitions = map[string]*unstructured.Unstructured{}

		for _, obj := range t.steps.Definitions() {
			live, err := p.readLive(ctx, apiextensionsv1.SchemeGroupVersion.WithKind(obj.GetKind()), "", obj.GetName())
			if err != nil {
				t.unknown = err

				break
			}

			if live != nil {
				t.definitions[obj.GetName()] = live
			}
		}
	}
}

// readLive reads an object as it is; nil when it is not there. It lists by name, because Ambit may list these kinds everywhere,
// and get few of them.
func (p *state) readLive(
	ctx context.Context, kind schema.GroupVersionKind, namespace, name string,
) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))

	err := p.Live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}

	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // That there is none is no error.
	}

	return &list.Items[0], nil
}
