package snapshot

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// deployment is the name under which every profile installs the manager.
const deployment = "ambit"

// Manager finds out how the manager runs: the arguments of its Deployment say. Without one it is taken to run as in the profile
// cluster, which note says.
func (r *Reader) Manager(ctx context.Context, namespace string) (m predict.Manager, note string, err error) {
	d := &appsv1.Deployment{}

	switch err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, d); {
	case apierrors.IsNotFound(err):
		return predict.ManagerOf(namespace, nil), fmt.Sprintf("there is no Deployment %s/%s, so Ambit is taken to run as in the "+
			"profile cluster; say where it is by --ambit-namespace", namespace, deployment), nil
	case apierrors.IsForbidden(err):
		return predict.ManagerOf(namespace, nil), fmt.Sprintf("you may not read Deployment %s/%s, so Ambit is taken to run as in "+
			"the profile cluster", namespace, deployment), nil
	case err != nil:
		return m, "", fmt.Errorf("reading Deployment %s/%s: %w", namespace, deployment, err)
	}

	var arguments []string
	for i := range d.Spec.Template.Spec.Containers {
		arguments = append(arguments, d.Spec.Template.Spec.Containers[i].Args...)
	}

	m = predict.ManagerOf(namespace, arguments)
	m.Account = d.Spec.Template.Spec.ServiceAccountName

	return m, "", nil
}

// ClusterScoped are the resources, of those that the scopes' rules name, that have no namespace.
func (r *Reader) ClusterScoped(scopes []scope.Scope) map[string]struct{} {
	return plan.ClusterScoped(scopes, discovered.New(r.RESTMapper()).IsClusterScoped)
}
