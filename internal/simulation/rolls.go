package simulation

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
)

// roll deletes the pods that a workload had: Kubernetes replaces pods of another template, and ends those of a workload that is
// scaled to zero. Their accounts and labels then count for nothing; those of the new ones are in the template.
func (c *Cluster) roll(before, after *unstructured.Unstructured) {
	if !rolls(before, after) {
		return
	}

	workload := keyOf(after)

	for _, key := range c.keys(schema.GroupKind{Kind: "Pod"}, workload.Namespace) {
		by := read.ControllerOf(c.get(key))
		if by.Name == workload.Name && string(by.Kind) == workload.Kind.Kind {
			c.delete(key)
		}
	}
}

// rolls says whether a change of a workload ends the pods that it had.
func rolls(before, after *unstructured.Unstructured) bool {
	switch kind := after.GroupVersionKind().GroupKind(); {
	case kind.Group != appsv1.GroupName:
		return false
	case kind.Kind != "Deployment" && kind.Kind != "StatefulSet" && kind.Kind != "DaemonSet":
		return false
	}

	if replicas, set, _ := unstructured.NestedInt64(after.Object, "spec", "replicas"); set && replicas == 0 {
		return true
	}

	obj := facts.WorkloadKind(after.GetKind()).Type().New()
	if runtime.DefaultUnstructuredConverter.FromUnstructured(after.Object, obj) == nil && facts.KeepsPods(obj) {
		return false
	}

	was, _, _ := unstructured.NestedMap(before.Object, "spec", "template")
	is, _, _ := unstructured.NestedMap(after.Object, "spec", "template")

	return !equality.Semantic.DeepEqual(was, is)
}
