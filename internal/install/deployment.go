package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// AnnotationApplied on a Deployment is a hash of what was applied last.
	AnnotationApplied = "ambit.dev/applied"

	// conditionVariable tells an operator the name of its OperatorCondition.
	conditionVariable = "OPERATOR_CONDITION_NAME"
)

// deployments are what a CSV asks for, with the annotations that the CSV will have.
func (w *Snapshot) deployments(csv *olm.ClusterServiceVersion, annotations map[string]string) []*appsv1.Deployment {
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs

	return collect.Map(collect.Pointers(specs), func(s *olm.StrategyDeploymentSpec) *appsv1.Deployment {
		return w.deployment(csv, s, annotations)
	})
}

// deployment is one that a CSV asks for, with what its Subscription says and the certificate of its webhooks.
func (w *Snapshot) deployment(
	csv *olm.ClusterServiceVersion, from *olm.StrategyDeploymentSpec, annotations map[string]string,
) *appsv1.Deployment {
	d := asPublished(csv, from, annotations)

	if config := w.Configs[csv.Name]; config != nil {
		config.configure(d)
	}

	w.mount(csv, d)
	d.Annotations = merged(d.Annotations, map[string]string{AnnotationApplied: digest(d)})

	return d
}

func asPublished(
	csv *olm.ClusterServiceVersion, from *olm.StrategyDeploymentSpec, annotations map[string]string,
) *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: csv.Namespace, Name: from.Name, Labels: merged(from.Label, ownerLabels(csv)),
			OwnerReferences: []metav1.OwnerReference{ownerOf(csv)},
		},
		Spec: *from.Spec.DeepCopy(),
	}
	template := &d.Spec.Template
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}

	// As OLM does it, so that an operator can read them through the downward API. What others keep in the annotations of the
	// CSV for themselves is none of the pods' business, and would roll them.
	for key, value := range annotations {
		if !isPrivate(key) {
			template.Annotations[key] = value
		}
	}

	for i := range template.Spec.Containers {
		c := &template.Spec.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == conditionVariable })
		c.Env = append(c.Env, corev1.EnvVar{Name: conditionVariable, Value: csv.Name})
	}

	return d
}

func isPrivate(annotation string) bool {
	return annotation == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(annotation, "ambit.dev/") ||
		strings.HasPrefix(annotation, "nss.operator.ibm.com/")
}

func ownerOf(csv *olm.ClusterServiceVersion) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: olm.SchemeGroupVersion.String(), Kind: scope.KindCSV, Name: csv.Name, UID: csv.UID,
	}
}

// ownerLabel is the name of a CSV as far as the value of a label can hold it.
func ownerLabel(csv *olm.ClusterServiceVersion) string { return scope.LabelValue(csv.Name) }

func ownerLabels(csv *olm.ClusterServiceVersion) map[string]string {
	return map[string]string{
		scope.LabelOLMOwner: ownerLabel(csv), scope.LabelOLMOwnerKind: scope.KindCSV, scope.LabelOLMOwnerNamespace: csv.Namespace,
		scope.LabelScope: compile.CSVOwner(csv.Namespace, csv.Name).Hash(),
	}
}

// digest tells two Deployments apart by everything that is applied.
func digest(d *appsv1.Deployment) string {
	text, err := json.Marshal(d)
	if err != nil {
		return "" // Never the hash of anything, so it is applied again.
	}

	return scope.Digest(16, string(text))
}

// isAsWanted says whether a live Deployment needs no write: it was made from the same, and nobody changed a field since.
func isAsWanted(live, want *appsv1.Deployment) bool {
	return live.Annotations[AnnotationApplied] == want.Annotations[AnnotationApplied] &&
		isDerived(want.Spec, live.Spec) && isDerived(want.Labels, live.Labels) &&
		slices.ContainsFunc(live.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == want.OwnerReferences[0].UID })
}

// waitsFor says what a Deployment still lacks to be ready; empty when it is.
func waitsFor(d *appsv1.Deployment) string {
	if d == nil {
		return "it does not exist"
	}

	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return "deployment exceeded its progress deadline: " + c.Message
		}
	}

	switch s, replicas := &d.Status, ptr.Deref(d.Spec.Replicas, 1); {
	case s.ObservedGeneration < d.Generation:
		return "waiting for its spec to be observed"
	case s.UpdatedReplicas < replicas:
		return fmt.Sprintf("%d of %d updated replicas", s.UpdatedReplicas, replicas)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("%d replicas of before have yet to end", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < replicas:
		return fmt.Sprintf("%d of %d replicas are available", s.AvailableReplicas, replicas)
	default:
		return ""
	}
}
