package read

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	olmOperatorGroup = "olm.operatorGroup"
)

func convertWorkload(obj client.Object) (facts.Workload, bool) {
	t := facts.TypeOfWorkload(obj)
	if t == nil || t.OnlyBare && metav1.GetControllerOfNoCopy(obj) != nil {
		return facts.Workload{}, false
	}

	template, idle := t.Pods(obj)
	w := facts.Workload{
		Kind: t.Kind, Name: obj.GetName(), Idle: idle,
		RestartDisabled: restartDisabled(obj), KeepsPods: facts.KeepsPods(obj),
		Birth: facts.Birth{Created: obj.GetCreationTimestamp().Time},
	}

	// On others such marks are somebody else's, copied with the rest of a template.
	if t.Restart == facts.ByTemplate {
		w.Restarted = parseTime(obj.GetAnnotations()[scope.AnnotationRestarted])
		w.RestartWait = parseDuration(obj.GetAnnotations()[scope.AnnotationRestartWait])
		w.ListHash = template.Annotations[scope.AnnotationListHash]
		w.InjectedWith = template.Annotations[scope.AnnotationInjectedWith]
		w.TemplateAnnotated = len(template.Annotations) > 0
		w.PodSpec = PodSpec(&template.Spec)
	}

	noteInjection(&w, obj)

	w.Template = Template(&template.ObjectMeta, &template.Spec)
	w.OwnedByOLM = hasMark(&template.ObjectMeta) ||
		(obj.GetLabels()[scope.LabelOLMOwner] != "" && obj.GetLabels()[scope.LabelOLMOwnerKind] == scope.KindCSV)

	if obj.GetLabels()[scope.LabelOLMOwnerKind] == scope.KindCSV {
		w.CSV = obj.GetLabels()[scope.LabelOLMOwner]
	}

	return w, true
}

func convertPod(obj client.Object) (facts.Pod, bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return facts.Pod{}, false
	}

	return facts.Pod{
		PodRef:     facts.PodRef{Name: pod.Name, UID: pod.UID},
		Template:   Template(&pod.ObjectMeta, &pod.Spec),
		Controller: ControllerOf(pod),
		OwnedByOLM: hasMark(&pod.ObjectMeta), RestartDisabled: restartDisabled(pod),
		ListHash: shared(mark(pod.Annotations[scope.AnnotationListHash])),
		Ending: pod.DeletionTimestamp != nil ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Birth: facts.Birth{Created: pod.CreationTimestamp.Time},
		Began: began(pod),
	}, true
}

// Template reads what a pod template and a pod have in common.
func Template(meta *metav1.ObjectMeta, spec *corev1.PodSpec) facts.Template {
	return facts.Template{
		Labels: meta.Labels, Reads: configMapsReadBy(spec),
		Account: facts.AccountOf(spec),
	}
}

func restartDisabled(obj client.Object) bool {
	return obj.GetAnnotations()[scope.AnnotationRestart] == scope.RestartDisabled
}

// hasMark says whether OLM's operator group is on a pod. OLM carries it as an annotation; a label is accepted as well.
func hasMark(meta *metav1.ObjectMeta) bool {
	return meta.Annotations[olmOperatorGroup] != "" || meta.Labels[olmOperatorGroup] != ""
}

// ControllerOf names the workload behind a pod, or behind another object. A Deployment's pods belong to its ReplicaSet, whose
// name is that of the Deployment and the pod-template-hash that is also a label of the pod.
func ControllerOf(obj client.Object) facts.WorkloadRef {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return facts.WorkloadRef{}
	}

	if hash := obj.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, cut := strings.CutSuffix(owner.Name, "-"+hash); cut {
			return facts.WorkloadRef{Kind: facts.Deployment, Name: name}
		}
	}

	return facts.WorkloadRef{Kind: facts.WorkloadKind(owner.Kind), Name: owner.Name}
}

// began is when the first container of the pod began, or zero while none has. For a container that restarted, its last start
// counts: it read its environment again. Which container reads which ConfigMap does not matter: a volume is there before any
// of them.
func began(pod *corev1.Pod) time.Time {
	var first time.Time

	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if t := startOf(&statuses[i].State); !t.IsZero() && (first.IsZero() || t.Before(first)) {
				first = t
			}
		}
	}

	return first
}

func startOf(s *corev1.ContainerState) time.Time {
	switch {
	case s.Running != nil:
		return s.Running.StartedAt.Time
	case s.Terminated != nil:
		return s.Terminated.StartedAt.Time
	default:
		return time.Time{}
	}
}

// configMapsReadBy finds the ConfigMaps that a pod reads: by a variable, all its keys as variables, a volume, or a part of
// a projected volume, in ordinary and init containers. Sorted; nil when there are none.
func configMapsReadBy(spec *corev1.PodSpec) []string {
	names := map[string]struct{}{}

	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			readByEnvironment(&containers[i], names)
		}
	}

	for i := range spec.Volumes {
		readByVolume(&spec.Volumes[i], names)
	}

	return slices.Sorted(maps.Keys(names))
}

func readByEnvironment(c *corev1.Container, names map[string]struct{}) {
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			names[from.ConfigMapKeyRef.Name] = struct{}{}
		}
	}

	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			names[ref.Name] = struct{}{}
		}
	}
}

func readByVolume(v *corev1.Volume, names map[string]struct{}) {
	if v.ConfigMap != nil {
		names[v.ConfigMap.Name] = struct{}{}
	}

	if v.Projected == nil {
		return
	}

	for i := range v.Projected.Sources {
		if cm := v.Projected.Sources[i].ConfigMap; cm != nil {
			names[cm.Name] = struct{}{}
		}
	}
}
