package survey

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ambit-k8s/ambit/internal/forecast"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// deployment is the name under which every profile installs the manager.
const deployment = "ambit"

// Manager finds out how the manager runs: the arguments of its Deployment say. Without one it is taken to run as in the profile
// cluster, which note says.
func (r *Reader) Manager(ctx context.Context, namespace string) (m forecast.Manager, note string, err error) {
	d := &appsv1.Deployment{}

	switch err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, d); {
	case apierrors.IsNotFound(err):
		return forecast.ManagerOf(namespace, nil), fmt.Sprintf("there is no Deployment %s/%s, so Ambit is taken to run as in the "+
			"profile cluster; say where it is by --ambit-namespace", namespace, deployment), nil
	case apierrors.IsForbidden(err):
		return forecast.ManagerOf(namespace, nil), fmt.Sprintf("you may not read Deployment %s/%s, so Ambit is taken to run as in "+
			"the profile cluster", namespace, deployment), nil
	case err != nil:
		return m, "", fmt.Errorf("reading Deployment %s/%s: %w", namespace, deployment, err)
	}

	var arguments []string
	for i := range d.Spec.Template.Spec.Containers {
		arguments = append(arguments, d.Spec.Template.Spec.Containers[i].Args...)
	}

	m = forecast.ManagerOf(namespace, arguments)
	m.Account = d.Spec.Template.Spec.ServiceAccountName

	return m, "", nil
}

// ClusterScoped are the resources, of those that the scopes' rules name, that have no namespace.
func (r *Reader) ClusterScoped(scopes []scope.Scope) map[string]struct{} {
	out := map[string]struct{}{}
	mapper := r.RESTMapper()

	for i := range scopes {
		for _, b := range scopes[i].Binds {
			for j := range b.Rules {
				for _, what := range plan.ResourcesOf(&b.Rules[j]) {
					if isClusterScoped(mapper, what) {
						out[what] = struct{}{}
					}
				}
			}
		}
	}

	return out
}

func isClusterScoped(mapper meta.RESTMapper, what string) bool {
	resource := schema.ParseGroupResource(what)

	kind, err := mapper.KindFor(resource.WithVersion(""))
	if err != nil {
		return false
	}

	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)

	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}
