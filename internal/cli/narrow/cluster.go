package narrow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// cluster is what a cluster knows that files do not say. It only reads, with the caller's rights. A nil one knows nothing.
type cluster struct {
	client.Client

	said []string
}

func (c *cluster) notef(format string, values ...any) {
	if text := fmt.Sprintf(format, values...); !slices.Contains(c.said, text) {
		c.said = append(c.said, text)
	}
}

func (c *cluster) notes() []string {
	if c == nil {
		return nil
	}

	return c.said
}

// connect asks the cluster which resources it has; nil where no cluster is configured.
func (o *Options) connect(n *narrow.Options) (*cluster, error) {
	_, err := o.Cluster.ToRESTConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil //nolint:nilnil // There is none.
	}

	c, err := o.discover(n.Kinds)
	if err != nil && o.From == "" {
		return nil, fmt.Errorf("%w; --offline asks no cluster", err)
	}

	return c, err
}

func (o *Options) discover(kinds *reach.Kinds) (*cluster, error) {
	all, config, err := command.Connect(o.Cluster)
	if err != nil {
		return nil, err
	}

	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}

	c := &cluster{Client: all}

	return c, c.discover(d, kinds)
}

func (c *cluster) discover(d discovery.DiscoveryInterface, kinds *reach.Kinds) error {
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("asking the cluster for its resources: %w", command.OfDiscovery(err))
	}

	if err != nil {
		c.notef("not every API of the cluster answers: %v", err)
	}

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("asking the cluster for its resources: %w", err)
		}

		for i := range list.APIResources {
			r := &list.APIResources[i]
			kinds.Add(reach.Resource{Group: gv.Group, Name: r.Name}, r.Namespaced)
		}
	}

	return nil
}

// serve hands to the narrowing what the cluster knows.
func (c *cluster) serve(ctx context.Context, n *narrow.Options) {
	if c == nil {
		return
	}

	const unread = "roles or bindings could not be read, so ClusterRoles stay as they are, because others may use them"

	c.serveRoles(ctx, n)
	n.RoleBindings, n.Everywhere = c.roleBindings(ctx, unread), c.everywhere(ctx, unread)
	n.ClusterRoles = c.clusterRoles(ctx, unread)
	n.Scopes = func() ([]scope.Scope, bool) { return c.scopes(ctx) }
	n.Policies = func() ([]admissionv1.ValidatingAdmissionPolicy, bool) { return c.policies(ctx) }
	n.Namespaces = c.count(ctx, n)
}

// serveCheck hands to a comparison what the cluster knows.
func (c *cluster) serveCheck(ctx context.Context, n *narrow.Options) error {
	if c == nil {
		return nil
	}

	const unbound = " could not be read, so those to roles that are not there yet are not compared"

	c.serveRoles(ctx, n)
	n.RoleBindings, n.Everywhere = c.roleBindings(ctx, "RoleBindings"+unbound), c.everywhere(ctx, "ClusterRoleBindings"+unbound)
	n.ClusterRoles = c.clusterRoles(ctx,
		"ClusterRoles could not be read, so what those with an aggregationRule take by labels is not compared")
	n.AccountThere = func(a narrow.Account) (there, known bool) { return c.hasAccount(ctx, a) }

	fences, err := c.fences(ctx)
	n.Fences = func() *narrow.Stream { return fences }

	return err
}

// serveRoles hands out the roles of the cluster.
func (c *cluster) serveRoles(ctx context.Context, n *narrow.Options) {
	read := func(what string, key client.ObjectKey, role client.Object) bool {
		err := c.Get(ctx, key, role)
		if client.IgnoreNotFound(err) != nil {
			c.notef("%s %q could not be read: %v", what, strings.TrimPrefix(key.String(), "/"), err)
		}

		return err == nil
	}

	n.Roles = func(name string) *rbacv1.ClusterRole {
		role := &rbacv1.ClusterRole{}
		if !read("ClusterRole", client.ObjectKey{Name: name}, role) {
			return nil
		}

		return role
	}

	n.RoleIn = func(namespace, name string) *rbacv1.Role {
		role := &rbacv1.Role{}
		if !read("Role", client.ObjectKey{Namespace: namespace, Name: name}, role) {
			return nil
		}

		return role
	}
}

// count returns the namespaces, and whether the labels of members select them.
func (c *cluster) count(ctx context.Context, n *narrow.Options) narrow.Count {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))

	if err := c.List(ctx, list); err != nil {
		c.notef("namespaces could not be counted: %v", err)

		return nil
	}

	out, selector := narrow.Count{}, labels.SelectorFromSet(n.MemberLabels)

	for i := range list.Items {
		out[list.Items[i].Name] = len(n.MemberLabels) > 0 && selector.Matches(labels.Set(list.Items[i].Labels))
	}

	return out
}

// hasAccount says whether the cluster has an account, and whether that is known.
func (c *cluster) hasAccount(ctx context.Context, a narrow.Account) (there, known bool) {
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))

	err := c.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, account)
	if client.IgnoreNotFound(err) != nil {
		c.notef("service account %s/%s could not be read: %v", a.Namespace, a.Name, err)
	}

	return err == nil, client.IgnoreNotFound(err) == nil
}

// fences are the admission policies of the cluster, and their bindings.
func (c *cluster) fences(ctx context.Context) (*narrow.Stream, error) {
	policies, bindings := &admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{}

	for _, list := range []client.ObjectList{policies, bindings} {
		// An API server that has none of the kind has no fence.
		if err := c.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			c.notef("admission policies could not be read, so those that the cluster alone has are not compared: %v", err)
		}
	}

	return c.stream(slices.Concat(snapshot.Objects(policies), snapshot.Objects(bindings)))
}
