package reading

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// missingClusterRoles are those that the plan binds and that do not exist. Where the caller may not look, they count as
// existing: the right to bind what is not there gives nothing.
func missingClusterRoles(ctx context.Context, c client.Reader, p *plan.ScopePlan) (sets.Set[string], error) {
	missing, names := sets.New[string](), sets.New[string]()

	for i := range p.Copies {
		if ref := p.Copies[i].RoleRef; ref.Kind == "ClusterRole" {
			names.Insert(ref.Name)
		}
	}

	for _, name := range sets.List(names) {
		role := &metav1.PartialObjectMetadata{}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))

		err := c.Get(ctx, client.ObjectKey{Name: name}, role)

		switch {
		case apierrors.IsNotFound(err):
			missing.Insert(name)
		case err != nil && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("looking for ClusterRole %s: %w", name, command.OneLine(err))
		}
	}

	return missing, nil
}

// ReadNamespace reads what a plan needs to know of a scope's namespace.
func ReadNamespace(ctx context.Context, c client.Client, namespace string) (*facts.Facts, error) {
	reader := snapshot.New(c)

	f, err := reader.Sources(ctx, namespace)
	if err != nil {
		return nil, command.OneLine(err)
	}

	denied := reader.Denied()
	forbidden := collect.Map(denied, func(d snapshot.Denied) string { return d.Resource })

	if len(forbidden) > 0 {
		return nil, fmt.Errorf("what the scope needs is unknown, because you may not list %s in namespace %s; "+
			"let somebody run this who may, such as an administrator of both namespaces", strings.Join(forbidden, ", "), namespace)
	}

	return f, nil
}

// PlanOne plans one scope as the manager does, from what was read. ClusterRoles count as existing unless they are known not to:
// most callers may not list them.
func PlanOne(ctx context.Context, c client.Reader, f *facts.Facts, s *scope.Scope) (*plan.ScopePlan, error) {
	p := plan.New([]scope.Scope{*s}, f)

	missing, err := missingClusterRoles(ctx, c, &p.Scopes[0])
	if err != nil || len(missing) == 0 {
		return &p.Scopes[0], err
	}

	known := *f
	known.ClusterRoles = map[string]facts.ClusterRole{}

	for _, b := range f.OperatorNamespace.Bindings {
		if b.RoleRef.Kind == "ClusterRole" && !missing.Has(b.RoleRef.Name) {
			known.ClusterRoles[b.RoleRef.Name] = facts.ClusterRole{}
		}
	}

	p = plan.New([]scope.Scope{*s}, &known)

	return &p.Scopes[0], nil
}
