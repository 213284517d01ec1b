package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// world is the cluster as the caller may see and change it.
type world struct {
	client.Client

	namespace, to string
}

// world connects, and makes sure that both namespaces are there.
func (o *ConsentOptions) world(ctx context.Context) (*world, error) {
	config, err := o.Config.ClientConfig()
	if err != nil {
		return nil, noCluster(err)
	}

	// The API server warns about the finalizer's name at every write of a scope; the name is IBM's.
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "ambit/" + Version
	config.QPS = -1 // The API server's own fairness is the limit.

	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, fmt.Errorf("starting: %w", err)
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", oneLineError{err})
	}

	w := &world{Client: c, namespace: o.Namespace, to: o.To}
	for _, name := range []string{o.Namespace, o.To} {
		if err := w.mustExist(ctx, name); err != nil {
			return nil, err
		}
	}

	return w, nil
}

// mustExist fails for a namespace that is not there. Whether it is, a caller without the right to see it is told by the
// first thing that they read or write in it.
func (w *world) mustExist(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}

	err := w.Get(ctx, client.ObjectKey{Name: name}, ns)

	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist; create it first, or correct the name", name)
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for namespace %s: %w", name, oneLineError{err})
	case ns.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted; wait until it is gone and create it again", name)
	default:
		return nil
	}
}

// scope finds the scope that is meant.
func (w *world) scope(ctx context.Context, name string) (*operatorv1.NamespaceScope, error) {
	var list operatorv1.NamespaceScopeList

	err := w.List(ctx, &list, client.InNamespace(w.to))

	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster does not know NamespaceScopes; install Ambit first")
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not list the NamespaceScopes of namespace %s; ask its administrator for the role view", w.to)
	case err != nil:
		return nil, fmt.Errorf("listing the NamespaceScopes of namespace %s: %w", w.to, oneLineError{err})
	}

	nss, err := consent.Choose(list.Items, w.to, name)

	switch {
	case errors.Is(err, consent.ErrNoScope):
		return nil, fmt.Errorf("%w; create it first, or give --grant-only with authorize --all or with revoke", err)
	case errors.Is(err, consent.ErrSeveralScopes), errors.Is(err, consent.ErrScopeNotThere):
		return nil, fmt.Errorf("%w; give --scope NAME", err)
	case err != nil:
		return nil, err
	default:
		return nss, nil
	}
}

// plan reads the scope's namespace, and plans as the manager does.
func (w *world) plan(ctx context.Context, nss *operatorv1.NamespaceScope) (*plan.ScopePlan, error) {
	h := &consent.Home{Namespaces: map[string]facts.Namespace{w.namespace: {}}}

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
		err := w.List(ctx, what.list, client.InNamespace(w.to))

		switch {
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, what.resource)
		case err != nil:
			return nil, fmt.Errorf("listing the %s of namespace %s: %w", what.resource, w.to, oneLineError{err})
		}
	}

	if len(forbidden) > 0 {
		return nil, fmt.Errorf("what the scope needs cannot be told, because you may not list %s in namespace %s; "+
			"let somebody run this who may, such as an administrator of both namespaces", strings.Join(forbidden, ", "), w.to)
	}

	p := h.Plan(nss)

	missing, err := w.missingClusterRoles(ctx, p)
	if err != nil || len(missing) == 0 {
		return p, err
	}

	h.NoClusterRoles = missing

	return h.Plan(nss), nil
}

// missingClusterRoles are those that the plan binds and that do not exist. Where the caller may not look, they count as
// existing: the right to bind what is not there gives nothing.
func (w *world) missingClusterRoles(ctx context.Context, p *plan.ScopePlan) (map[string]struct{}, error) {
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

		err := w.Get(ctx, client.ObjectKey{Name: name}, role)

		switch {
		case apierrors.IsNotFound(err):
			missing[name] = struct{}{}
		case err != nil && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("looking for ClusterRole %s: %w", name, oneLineError{err})
		}
	}

	return missing, nil
}
