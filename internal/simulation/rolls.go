package simulation

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
)

// roll replaces the pods that a workload had: Kubernetes does so for another template, and ends those of a workload that is
// scaled to zero. One new pod stands for all, and reads what is in the lists by then: without any, the workload would be taken
// for one whose pods nobody sees, and be restarted.
func (c *Cluster) roll(before, after *unstructured.Unstructured) {
	if !rolls(before, after) {
		return
	}

	workload := keyOf(after)

	var had []Key

	for _, key := range c.keys(schema.GroupKind{Kind: "Pod"}, workload.Namespace) {
		by := read.ControllerOf(c.get(key))
		if by.Name == workload.Name && string(by.Kind) == workload.Kind.Kind {
			had = append(had, key)
			c.delete(key)
		}
	}

	switch {
	case isIdle(after):
	case len(had) > 0:
		c.begin(had[0].Name, after)
	case isIdle(before):
		c.begin(workload.Name+"-0", after)
	}
}

// begin has a pod of a workload begin.
func (c *Cluster) begin(name string, of *unstructured.Unstructured) {
	template, _, _ := unstructured.NestedMap(of.Object, "spec", "template")
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	owner := metav1.OwnerReference{
		APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(), Controller: new(true),
	}

	if of.GetKind() == "Deployment" {
		// Its pods belong to a ReplicaSet, whose UID nobody asks for.
		const hash = "new"

		if labels == nil {
			labels = map[string]string{}
		}

		labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
		owner.Kind, owner.Name, owner.UID = "ReplicaSet", owner.Name+"-"+hash, types.UID(hash)
	}

	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
		"status": map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
			"name": "any", "image": "", "imageID": "", "ready": true, "restartCount": int64(0),
			"state": map[string]any{"running": map[string]any{"startedAt": metav1.NewTime(c.now).ToUnstructured()}},
		}}},
	}}
	pod.SetNamespace(of.GetNamespace())
	pod.SetName(name)
	pod.SetLabels(labels)
	pod.SetAnnotations(annotations)
	pod.SetOwnerReferences([]metav1.OwnerReference{owner})
	c.insert(pod)
}

func isIdle(workload *unstructured.Unstructured) bool {
	replicas, set, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas")

	return set && replicas == 0
}

// rolls says whether a change of a workload ends the pods that it had, or lets it have pods again.
func rolls(before, after *unstructured.Unstructured) bool {
	switch kind := after.GroupVersionKind().GroupKind(); {
	case kind.Group != appsv1.GroupName:
		return false
	case kind.Kind != "Deployment" && kind.Kind != "StatefulSet" && kind.Kind != "DaemonSet":
		return false
	case isIdle(before) || isIdle(after):
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
