package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// ServesInstalls says why the manager does not serve OLM's kinds; empty when it does.
func (r *Reader) ServesInstalls(ctx context.Context, m *predict.Manager) (string, error) {
	switch {
	case len(m.Namespaces) > 0 && m.OperatorGroups == string(read.ServeAlways):
		return "this Ambit serves single namespaces, and what it would install there is not planned; ambit preflight says what is " +
			"missing for it", nil
	case len(m.Namespaces) > 0:
		return "this Ambit serves single namespaces, and no OperatorGroups", nil
	case m.OperatorGroups == string(read.ServeNever):
		return "this Ambit runs with --operator-groups=disabled and leaves OperatorGroups alone", nil
	case m.OperatorGroups == string(read.ServeAlways):
		return "", nil
	}

	namespaces := m.OLMNamespaces
	if len(namespaces) == 0 {
		namespaces = read.OLMNamespaces()
	}

	for _, namespace := range namespaces {
		var deployments appsv1.DeploymentList
		if _, err := r.Need(ctx, &deployments, "deployments", namespace); err != nil {
			return "", err
		}

		for i := range deployments.Items {
			if d := &deployments.Items[i]; read.IsOLM(d) {
				return fmt.Sprintf("OLM's own controller %s/%s runs, so Ambit leaves OperatorGroups and what they install to it",
					namespace, d.Name), nil
			}
		}
	}

	return "", nil
}

// Installs reads into a cluster in memory what the manager looks at for what is installed in some namespaces. whole says that it
// holds all roles and bindings.
func (r *Reader) Installs(ctx context.Context, c *simulation.Cluster, namespaces []string, ambit string) (whole bool, err error) {
	in := &installReading{Reader: r, cluster: c, whole: true}

	in.everywhere(ctx, &corev1.NamespaceList{}, namespaceResource)
	in.everywhere(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, "customresourcedefinitions")
	in.rights(in.everywhere(ctx, &rbacv1.ClusterRoleList{}, "clusterroles"))
	in.rights(in.everywhere(ctx, &rbacv1.ClusterRoleBindingList{}, "clusterrolebindings"))
	in.rights(in.wherever(ctx, &rbacv1.RoleList{}, "roles", namespaces))
	in.rights(in.wherever(ctx, &rbacv1.RoleBindingList{}, "rolebindings", namespaces))
	in.wherever(ctx, &operatorsv1.OperatorGroupList{}, "operatorgroups", namespaces)
	in.everywhere(ctx, &admissionv1.MutatingWebhookConfigurationList{}, "mutatingwebhookconfigurations")
	in.everywhere(ctx, &admissionv1.ValidatingWebhookConfigurationList{}, "validatingwebhookconfigurations")

	csvs := install.NewList()
	in.wherever(ctx, csvs, "clusterserviceversions", namespaces)
	in.certificates(ctx, csvs, namespaces)

	for _, namespace := range namespaces {
		in.list(ctx, &corev1.ServiceAccountList{}, "serviceaccounts", namespace)
		in.list(ctx, &appsv1.DeploymentList{}, "deployments", namespace)
		in.list(ctx, &corev1.ServiceList{}, "services", namespace)
		in.list(ctx, listOf(olm.SubscriptionKind), "subscriptions", namespace)
		in.list(ctx, listOf(olm.InstallPlanKind), "installplans", namespace)
	}

	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(append([]string{ambit}, namespaces...)))) {
		sources := listOf(olm.CatalogSourceKind)
		in.list(ctx, sources, "catalogsources", namespace)
		in.content(ctx, sources)
	}

	return in.whole, in.err
}

func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(olm.SchemeGroupVersion.WithKind(kind + "List"))

	return list
}

// installReading reads one list after the other, until one fails.
type installReading struct {
	*Reader

	cluster *simulation.Cluster
	whole   bool
	err     error
}

func (in *installReading) rights(complete bool) { in.whole = in.whole && complete }

func (in *installReading) everywhere(ctx context.Context, list client.ObjectList, resource string) bool {
	return in.list(ctx, list, resource, "")
}

// wherever lists a resource everywhere, or where that may not be, in each of the namespaces.
func (in *installReading) wherever(ctx context.Context, list client.ObjectList, resource string, namespaces []string) bool {
	if in.err != nil {
		return false
	}

	listed, err := in.Lists(ctx, list, resource, "")
	if in.err = err; err != nil || listed == Complete {
		in.take(list)

		return listed == Complete
	}

	for _, namespace := range namespaces {
		one, _ := list.DeepCopyObject().(client.ObjectList) // A copy has the type of its original.
		in.list(ctx, one, resource, namespace)
	}

	return false
}

// list lists a resource, and says whether that may be.
func (in *installReading) list(ctx context.Context, list client.ObjectList, resource, namespace string) bool {
	if in.err != nil {
		return false
	}

	var listed Listed

	listed, in.err = in.Need(ctx, list, resource, namespace)
	in.take(list)

	return listed == Complete
}

func (in *installReading) take(list client.ObjectList) {
	found, err := objectsOf(list)
	in.err = errors.Join(in.err, err)

	for _, obj := range found {
		in.err = errors.Join(in.err, in.cluster.Add(obj))
	}
}

// content reads the ConfigMaps that catalogs are in.
func (in *installReading) content(ctx context.Context, sources *unstructured.UnstructuredList) {
	for i := range sources.Items {
		name, _, _ := unstructured.NestedString(sources.Items[i].Object, "spec", "configMap")
		if name == "" || in.err != nil {
			continue
		}

		in.one(ctx, &corev1.ConfigMap{}, "configmaps", sources.Items[i].GetNamespace(), name)
	}
}

// certificates reads the Secrets by which operators answer for webhooks, each by its name, as the manager does.
func (in *installReading) certificates(ctx context.Context, csvs *unstructured.UnstructuredList, namespaces []string) {
	for i := range csvs.Items {
		csv, err := install.Read(&csvs.Items[i])
		if err != nil || !slices.Contains(namespaces, csv.Namespace) {
			continue // Its status says what is wrong with one that cannot be read.
		}

		for _, s := range install.ServingOf(csv) {
			in.one(ctx, &corev1.Secret{}, "secrets", csv.Namespace, s.Secret)
		}
	}
}

func (in *installReading) one(ctx context.Context, obj client.Object, resource, namespace, name string) {
	if in.err != nil {
		return
	}

	switch err := in.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); {
	case err == nil:
		in.err = in.cluster.Add(obj)
	case apierrors.IsForbidden(err):
		in.Deny(Denied{Verb: "get", Resource: resource, Namespace: namespace})
	case !apierrors.IsNotFound(err):
		in.err = fmt.Errorf("reading %s %s of namespace %s: %w", resource, name, namespace, err)
	}
}

// Asker asks the API server what users hold, as these users. Where the caller may not act as them, nothing is known, unless
// whole says that the roles and bindings in memory tell everything.
func (r *Reader) Asker(ctx context.Context, config *rest.Config, whole bool) simulation.Asker {
	clients := map[string]client.Client{}

	return func(user, namespace string) ([]rbacv1.PolicyRule, bool, error) {
		if clients[user] == nil {
			c, err := r.As(config, user, nil)
			if err != nil {
				return nil, false, err
			}

			clients[user] = c
		}

		held, err := r.heldBy(ctx, clients[user], user, namespace)

		switch {
		case errors.Is(err, ErrMayNotAsk) && whole:
			return nil, true, nil
		case errors.Is(err, ErrMayNotAsk):
			r.Deny(Denied{Verb: "impersonate", Resource: "user " + user + ", so what it may do was not asked,"})

			return nil, false, nil
		default:
			return held, err == nil, err
		}
	}
}
