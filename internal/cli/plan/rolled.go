package plan

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rolled are the workloads whose pods go because of what the files make of them: Kubernetes replaces pods of another template,
// and takes those that nobody asks for any more. Their accounts and labels then count for nothing.
func rolled(proposals []*proposal) []client.Object {
	var out []client.Object

	for _, p := range proposals {
		if p.object == nil || p.live == nil || p.result != resultChanged {
			continue
		}

		is, pods, none := templateOf(p.object)
		if is == nil {
			continue
		}

		live, _ := p.object.DeepCopyObject().(client.Object) // A copy has the type of its original.
		if runtime.DefaultUnstructuredConverter.FromUnstructured(p.live.Object, live) != nil {
			continue
		}

		if was, _, _ := templateOf(live); pods && (none || !equality.Semantic.DeepEqual(was, is)) {
			out = append(out, p.object)
		}
	}

	return out
}

// templateOf is the template of a workload's pods, whether pods of another one are replaced, and whether there are to be none.
func templateOf(obj client.Object) (template *corev1.PodTemplateSpec, replaced, none bool) {
	isZero := func(n *int32) bool { return n != nil && *n == 0 }

	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return &obj.Spec.Template, true, isZero(obj.Spec.Replicas)
	case *appsv1.StatefulSet:
		return &obj.Spec.Template, obj.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType, isZero(obj.Spec.Replicas)
	case *appsv1.DaemonSet:
		return &obj.Spec.Template, obj.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType, false
	default:
		return nil, false, false
	}
}
