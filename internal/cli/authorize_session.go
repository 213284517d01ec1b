package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/connect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// session is the cluster as the caller may see and change it.
type session struct {
	client.Client

	namespace, to string
}

// connect connects, and makes sure that both namespaces are there.
func (o *GrantOptions) connect(ctx context.Context) (*session, error) {
	c, _, err := connect.To(o.Cluster)
	if err != nil {
		return nil, err
	}

	w := &session{Client: c, namespace: o.Namespace, to: o.To}

	for _, name := range []string{o.Namespace, o.To} {
		if err := w.mustExist(ctx, name); err != nil {
			return nil, err
		}
	}

	return w, nil
}

// mustExist fails for a namespace that is not there. Whether it is, a caller without the right to see it is told by the
// first thing that they read or write in it.
func (w *session) mustExist(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}

	err := w.Get(ctx, client.ObjectKey{Name: name}, ns)

	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist; create it first, or correct the name", name)
	case apierrors.IsForbidden(err):
		return nil
	case utilnet.IsConnectionRefused(err):
		return connect.NoCluster(err)
	case err != nil:
		return fmt.Errorf("looking for namespace %s: %w", name, command.OneLine(err))
	case ns.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted; wait until it is gone and create it again", name)
	default:
		return nil
	}
}

// findScope finds the scope of a namespace that is meant, among those of both groups. A group that the cluster does not know has
// none.
func findScope(ctx context.Context, c client.Reader, namespace string, wanted grant.Wanted) (*scope.Scope, error) {
	var scopes []scope.Scope

	known := false

	for _, group := range grant.Groups() {
		if wanted.Group != "" && wanted.Group != group {
			continue
		}

		found, err := scopesOf(ctx, c, namespace, group)

		switch {
		case meta.IsNoMatchError(err):
			continue
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("you may not list the NamespaceScopes of namespace %s in group %s; ask its administrator for the "+
				"role view, or name the scope and the other group: --scope GROUP/NAME", namespace, group)
		case err != nil:
			return nil, fmt.Errorf("listing the NamespaceScopes of namespace %s: %w", namespace, command.OneLine(err))
		}

		known = true

		scopes = append(scopes, found...)
	}

	if !known {
		return nil, errors.New("the cluster does not know NamespaceScopes; install Ambit first")
	}

	s, err := grant.Choose(scopes, namespace, wanted)

	switch {
	case errors.Is(err, grant.ErrNoScope):
		return nil, fmt.Errorf("%w; create it first, or give --grant-only with authorize --all or with revoke", err)
	case errors.Is(err, grant.ErrTwoGroups):
		return nil, fmt.Errorf("%w; give --scope GROUP/NAME", err)
	case errors.Is(err, grant.ErrSeveralScopes), errors.Is(err, grant.ErrScopeNotThere):
		return nil, fmt.Errorf("%w; give --scope NAME", err)
	default:
		return s, err
	}
}

// scopesOf are the scopes of a group.
func scopesOf(ctx context.Context, c client.Reader, namespace, group string) ([]scope.Scope, error) {
	var (
		scopes []scope.Scope
		usual  operatorv1.NamespaceScopeList
		old    namespacescopev1alpha1.NamespaceScopeList
		list   client.ObjectList = &usual
	)

	if group == namespacescopev1alpha1.GroupVersion.Group {
		list = &old
	}

	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err //nolint:wrapcheck // findScope says what was being done.
	}

	for i := range usual.Items {
		scopes = append(scopes, compile.NamespaceScope(&usual.Items[i]))
	}

	for i := range old.Items {
		scopes = append(scopes, compile.LegacyNamespaceScope(&old.Items[i]))
	}

	return scopes, nil
}

// plan reads the scope's namespace, and plans as the manager does.
func (w *session) plan(ctx context.Context, s *scope.Scope) (*plan.ScopePlan, error) {
	h, err := readOperatorNamespace(ctx, w.Client, w.to)
	if err != nil {
		return nil, err
	}

	h.Namespaces = map[string]facts.Namespace{w.namespace: {}}

	return planFrom(ctx, w.Client, h, s)
}

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
