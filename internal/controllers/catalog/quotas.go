package catalog

import (
	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/read"
)

const (
	// maxKind is how many bytes of memory the objects of each kind may take in a namespace.
	maxKind = 4 << 20
	// maxStatus is how much of that is kept of the status of one that is left out. What Ambit writes is smaller.
	maxStatus = 32 << 10
	// annotationOversized marks an object that is left out and whose status is too large to say so. The annotation is in the cache
	// only, where such objects have no other annotations.
	annotationOversized = "ambit.dev/oversized-status"
)

// Quotas are what is kept of Subscriptions, InstallPlans and CatalogSources, by their kind. Whoever writes them in a namespace
// decides how many they are and how large, and all other namespaces share the memory.
type Quotas map[string]*declared.Quota

// NewQuotas returns empty quotas.
func NewQuotas() Quotas {
	quotas := Quotas{}
	for _, kind := range []string{subscriptionKind, planKind, sourceKind} {
		quotas[kind] = declared.NewQuota(maxKind, empty)
	}

	return quotas
}

// Subscriptions returns the quota of Subscriptions.
func (r Quotas) Subscriptions() *declared.Quota { return r[subscriptionKind] }

func (r Quotas) gone(obj client.Object) {
	if quota := r[obj.GetObjectKind().GroupVersionKind().Kind]; quota != nil {
		quota.Gone(obj.GetNamespace(), obj.GetUID())
	}
}

// Transform is asked by the cache what to keep of an object without a type.
func (r Quotas) Transform(obj *unstructured.Unstructured) (any, error) {
	quota := r[obj.GetKind()]
	if quota == nil || obj.GroupVersionKind().Group != olmv1alpha1.GroupName || declared.IsEmptied(obj) {
		return obj, nil
	}

	trim(obj)

	return quota.Transform(obj)
}

// trim takes out of an object what is never looked at.
func trim(obj *unstructured.Unstructured) {
	obj.SetManagedFields(nil)

	if obj.GetKind() == planKind {
		withoutManifests(obj)

		return
	}

	obj.SetAnnotations(nil)
	obj.SetLabels(nil)

	if obj.GetKind() == sourceKind {
		spec, _ := obj.Object["spec"].(map[string]any)
		kept := map[string]any{}

		for _, field := range []string{fieldSourceType, fieldConfigMap} {
			if value, has := spec[field]; has {
				kept[field] = value
			}
		}

		obj.Object["spec"] = kept
	}
}

// withoutManifests leaves the manifests of an InstallPlan's steps out. They are most of what it is, and Ambit never reads them
// back.
func withoutManifests(ip *unstructured.Unstructured) {
	status, _ := ip.Object["status"].(map[string]any)
	steps, _ := status["plan"].([]any)

	for _, s := range steps {
		step, _ := s.(map[string]any)
		if resource, ok := step["resource"].(map[string]any); ok {
			delete(resource, "manifest")
		}
	}
}

// empty keeps of an object what identifies it, and its status; of a status that is too large, only what was installed.
func empty(o client.Object) {
	obj, is := o.(*unstructured.Unstructured)
	if !is {
		return
	}

	kept := install.Identity(obj)
	status, _ := obj.Object["status"].(map[string]any)

	switch {
	case status == nil:
	case read.Weight(status) <= maxStatus:
		kept.Object["status"] = status
	default:
		kept.SetAnnotations(map[string]string{annotationOversized: ""})
		kept.Object["status"] = installedBy(status)
	}

	obj.Object = kept.Object
}

// installedBy are the fields of a status that say what a Subscription installed.
func installedBy(status map[string]any) map[string]any {
	kept := map[string]any{}

	for _, field := range []string{"installedCSV", "currentCSV"} {
		if name, is := status[field].(string); is && len(name) <= catalog.MaxName {
			kept[field] = name
		}
	}

	return kept
}

// isOversized says whether the status of an object is too large for Ambit to read, and so to write.
func isOversized(obj *unstructured.Unstructured) bool {
	_, is := obj.GetAnnotations()[annotationOversized]

	return is && declared.IsEmptied(obj)
}
