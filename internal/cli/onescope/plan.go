package onescope

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// missingClusterRoles are those that the plan binds and that do not exist. Where the caller may not look, they count as
// existing: the right to bind what is not there gives nothing.
func missingClusterRoles(ctx context.Context, c client.Reader, p *plan.ScopePlan) (map[string]struct{}, error) {
	missing := map[string]struct{}{}

	var names []string

	for i := range p.Copies {
		if ref := p.Copies[i].RoleRef; ref.Kind == "ClusterRole" {
			names = append(names, ref.Name)
		}
	}

	slices.Sort(names)

	for _, name := range slices.Compact(names) {
		role := &metav1.PartialObjectMetadata{}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))

		err := c.Get(ctx, client.ObjectKey{Name: name}, role)

		switch {
		case apierrors.IsNotFound(err):
			missing[name] = struct{}{}
		case err != nil && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("looking for ClusterRole %s: %w", name, command.OneLine(err))
		}
	}

	return missing, nil
}

// ReadNamespace reads what a plan needs to know of a scope's namespace.
func ReadNamespace(ctx context.Context, c client.Reader, namespace string) (*grant.OperatorNamespace, error) {
	h := &grant.OperatorNamespace{}

	var forbidden []string

	for _, what := range []struct {
		resource string
		list     client.ObjectList
	}{
		{"roles", &h.Roles},
		{"rolebindings", &h.RoleBindings},
		{"serviceaccounts", &h.Accounts},
		{"pods", &h.Pods},
		{"deployments", &h.Deployments},
		{"statefulsets", &h.StatefulSets},
		{"daemonsets", &h.DaemonSets},
		{"jobs", &h.Jobs},
		{"cronjobs", &h.CronJobs},
	} {
		err := c.List(ctx, what.list, client.InNamespace(namespace))

		switch {
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, what.resource)
		case err != nil:
			return nil, fmt.Errorf("listing the %s of namespace %s: %w", what.resource, namespace, command.OneLine(err))
		}
	}

	if len(forbidden) > 0 {
		return nil, fmt.Errorf("what the scope needs is unknown, because you may not list %s in namespace %s; "+
			"let somebody run this who may, such as an administrator of both namespaces", strings.Join(forbidden, ", "), namespace)
	}

	return h, nil
}

// Plan plans as the manager does, from what was read.
func Plan(ctx context.Context, c client.Reader, h *grant.OperatorNamespace, s *scope.Scope) (*plan.ScopePlan, error) {
	p := h.Plan(*s)

	missing, err := missingClusterRoles(ctx, c, p)
	if err != nil || len(missing) == 0 {
		return p, err
	}

	h.NoClusterRoles = missing

	return h.Plan(*s), nil
}
