package install

import (
	"fmt"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Identity returns an object that has of another what identifies it, and when it came, changed and goes: all that the cache keeps
// of one that is left out, beside what its kind needs.
func Identity(obj *unstructured.Unstructured) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{}
	kept.SetGroupVersionKind(obj.GroupVersionKind())
	kept.SetNamespace(obj.GetNamespace())
	kept.SetName(obj.GetName())
	kept.SetUID(obj.GetUID())
	kept.SetResourceVersion(obj.GetResourceVersion())
	kept.SetGeneration(obj.GetGeneration())
	kept.SetCreationTimestamp(obj.GetCreationTimestamp())
	kept.SetDeletionTimestamp(obj.GetDeletionTimestamp())

	return kept
}

// Read reads a ClusterServiceVersion as the cache has it. What it returns shares nothing with that.
func Read(obj *unstructured.Unstructured) (*olm.ClusterServiceVersion, error) {
	csv := &olm.ClusterServiceVersion{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, csv); err != nil {
		return nil, fmt.Errorf("it cannot be read as a ClusterServiceVersion: %w", err)
	}

	return csv, nil
}

// Untyped is a ClusterServiceVersion as the API server has it.
func Untyped(csv *olm.ClusterServiceVersion) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, fmt.Errorf("writing ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}

	obj := scope.NewOLM(scope.KindCSV)
	gvk := obj.GroupVersionKind()
	obj.Object = content
	obj.SetGroupVersionKind(gvk)

	return obj, nil
}
