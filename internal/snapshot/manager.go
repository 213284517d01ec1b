package snapshot

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/predict"
)

// deployment is the name under which every profile installs the manager, and container that of its container.
const (
	deployment = "ambit"
	container  = "manager"
)

// Manager finds out how the manager runs: the arguments of its Deployment say. Without one it is taken to run as in the profile
// cluster, which note says.
func (r *Reader) Manager(ctx context.Context, namespace string) (m predict.Manager, note string, err error) {
	d := &appsv1.Deployment{}
	asInCluster, _ := predict.ManagerOf(namespace, nil)

	switch err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, d); {
	case apierrors.IsNotFound(err):
		return asInCluster, fmt.Sprintf("there is no Deployment %s/%s, so Ambit is taken to run as in the "+
			"profile cluster; say where it is by --ambit-namespace", namespace, deployment), nil
	case apierrors.IsForbidden(err):
		return asInCluster, fmt.Sprintf("you may not read Deployment %s/%s, so Ambit is taken to run as in "+
			"the profile cluster; if it runs elsewhere, say where by --ambit-namespace", namespace, deployment), nil
	case err != nil:
		return m, "", fmt.Errorf("reading Deployment %s/%s: %w", namespace, deployment, err)
	}

	if m, err = predict.ManagerOf(namespace, argumentsOf(&d.Spec.Template.Spec)); err != nil {
		note = fmt.Sprintf("no manager runs with the arguments of Deployment %s/%s, so how Ambit runs is not fully known: %v",
			namespace, deployment, err)
	}

	m.Account = d.Spec.Template.Spec.ServiceAccountName

	return m, note, nil
}

// argumentsOf are those of the manager. Every profile calls its container so; whoever calls it otherwise has it first.
func argumentsOf(pod *corev1.PodSpec) []string {
	if len(pod.Containers) == 0 {
		return nil
	}

	at := max(0, slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == container }))

	return slices.Concat(pod.Containers[at].Command, pod.Containers[at].Args)
}
