package catalog

import (
	"context"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Kinds returns an empty object of each kind that is reconciled here.
func Kinds() []client.Object {
	return []client.Object{scope.NewOLM(sourceKind), scope.NewOLM(subscriptionKind), scope.NewOLM(planKind)}
}

// ToKey asks for a reconcile of the namespace that a resource is in. The quotas forget what is gone; they may be nil.
func ToKey(to *changes.Changes, quotas Quotas) changes.Handler {
	return changes.ToKey(to, scope.Catalogs, quotas.gone)
}

// ToWaiting asks for a reconcile of each namespace in which an InstallPlan is to write a definition and is not done yet: somebody
// changed it, and one of them may have waited for that.
func ToWaiting(to *changes.Changes, cache client.Reader) changes.Handler {
	return changes.Requesting(to, func(ctx context.Context, definition client.Object) []scope.Key {
		list := scope.NewOLMList(planKind)
		if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil // It is asked only once it is filled.
		}

		var out []scope.Key

		for i := range list.Items {
			phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
			if phase != string(olmv1alpha1.InstallPlanPhaseComplete) && writes(&list.Items[i], definition.GetName()) {
				out = append(out, scope.Catalogs.In(list.Items[i].GetNamespace()))
			}
		}

		return out
	})
}

// writes says whether an InstallPlan may write something of a name, by the steps in its status. One of which there are none may.
func writes(ip *unstructured.Unstructured, name string) bool {
	found, told, _ := unstructured.NestedFieldNoCopy(ip.Object, "status", "plan")
	steps, _ := found.([]any)

	return !told || slices.ContainsFunc(steps, func(step any) bool {
		content, _ := step.(map[string]any)
		written, _, _ := unstructured.NestedString(content, "resource", "name")

		return written == name
	})
}
