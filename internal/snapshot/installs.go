package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Installs says what to read of what is installed in some namespaces.
type Installs struct {
	Namespaces []string
	// Ambit is the namespace of the manager, whose catalogs are for all namespaces.
	Ambit string
	// Within are the namespaces in which alone the manager has rights, and so looks at; none for a manager that may look at all.
	Within []string
	// Proposed are objects that are about to be written.
	Proposed []*unstructured.Unstructured
}

// Installed is what was read of what is installed.
type Installed struct {
	// Namespaces are those that were asked for, with those whose operators matter to these, sorted.
	Namespaces []string
	// Needed are the namespaces without which the answer would be wrong.
	Needed []string

	places map[string]*install.Place
}

// Linked says whether ClusterServiceVersions that come to these namespaces have to do with operators of others.
func (i *Installed) Linked(coming []*unstructured.Unstructured) bool {
	propose(i.places, coming)

	return len(install.WithRivals(i.Namespaces, i.places)) > len(i.Namespaces)
}

// Installs adds to a snapshot what the manager looks at for what is installed in some namespaces, and in those whose operators
// matter to these.
func (r *Reader) Installs(ctx context.Context, s *Snapshot, what Installs) (*Installed, error) {
	in := &installReading{Reader: r, snapshot: s}

	groups, csvs := &operatorsv1.OperatorGroupList{}, scope.NewOLMList(scope.KindCSV)
	in.wherever(ctx, groups, "operatorgroups", what.Namespaces)
	in.wherever(ctx, csvs, "clusterserviceversions", what.Namespaces)

	places := placesOf(groups, csvs, what.Proposed)
	if len(what.Within) > 0 {
		maps.DeleteFunc(places, func(name string, _ *install.Place) bool { return !slices.Contains(what.Within, name) })
	}

	what.Namespaces = install.WithRivals(what.Namespaces, places)
	out := &Installed{Namespaces: what.Namespaces, Needed: what.Namespaces, places: places}
	targets := targetsOf(what.Namespaces, places)

	if len(what.Within) > 0 {
		if out.Needed = targets; in.err == nil {
			in.err = in.lookUp(ctx, in.snapshot, targets)
		}
	} else {
		in.list(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, "customresourcedefinitions", "")
		in.list(ctx, &admissionv1.MutatingWebhookConfigurationList{}, "mutatingwebhookconfigurations", "")
		in.list(ctx, &admissionv1.ValidatingWebhookConfigurationList{}, "validatingwebhookconfigurations", "")
	}

	in.rbac(ctx, &rbacv1.RoleList{}, "roles", targets)
	in.rbac(ctx, &rbacv1.RoleBindingList{}, "rolebindings", targets)

	certificates := certificatesOf(csvs, what.Proposed)

	for _, namespace := range what.Namespaces {
		services := &corev1.ServiceList{}
		in.list(ctx, &corev1.ServiceAccountList{}, "serviceaccounts", namespace)
		in.list(ctx, &appsv1.DeploymentList{}, "deployments", namespace)
		in.list(ctx, services, "services", namespace)

		// The manager, too, reads each Secret by its name.
		for _, name := range sorted(append(certificates[namespace], leftBehind(services)...)) {
			in.one(ctx, &corev1.Secret{}, "secrets", namespace, name)
		}
	}

	if len(what.Within) == 0 {
		in.catalogs(ctx, &what)
	}

	return out, in.err
}

// catalogs reads what is subscribed to, and from where.
func (in *installReading) catalogs(ctx context.Context, what *Installs) {
	for _, namespace := range what.Namespaces {
		in.list(ctx, scope.NewOLMList(olm.SubscriptionKind), "subscriptions", namespace)
		in.list(ctx, scope.NewOLMList(olm.InstallPlanKind), "installplans", namespace)
	}

	for _, namespace := range sorted(append([]string{what.Ambit}, what.Namespaces...)) {
		sources := scope.NewOLMList(olm.CatalogSourceKind)
		in.list(ctx, sources, "catalogsources", namespace)
		in.content(ctx, sources)
	}
}

// placesOf are the namespaces in which something is installed, with what groups and ClusterServiceVersions there say, or are
// about to say.
func placesOf(
	groups *operatorsv1.OperatorGroupList, csvs *unstructured.UnstructuredList, proposed []*unstructured.Unstructured,
) map[string]*install.Place {
	places := map[string]*install.Place{}

	for i := range groups.Items {
		p := placeIn(places, groups.Items[i].Namespace)
		p.Reach = append(p.Reach, install.Reach(&groups.Items[i])...)
	}

	for i := range csvs.Items {
		p := placeIn(places, csvs.Items[i].GetNamespace())
		p.APIs = append(p.APIs, install.ProvidedBy(csvs.Items[i].Object)...)
	}

	propose(places, proposed)

	return places
}

// propose adds what OperatorGroups and ClusterServiceVersions are about to say.
func propose(places map[string]*install.Place, proposed []*unstructured.Unstructured) {
	for _, obj := range proposed {
		p := placeIn(places, obj.GetNamespace())

		switch obj.GetKind() {
		case operatorsv1.OperatorGroupKind:
			p.Reach = append(p.Reach, install.ProposedReach(obj.Object)...)
		case scope.KindCSV:
			p.APIs = append(p.APIs, install.ProvidedBy(obj.Object)...)
		}
	}
}

func placeIn(places map[string]*install.Place, namespace string) *install.Place {
	if places[namespace] == nil {
		places[namespace] = &install.Place{}
	}

	return places[namespace]
}

// targetsOf are the namespaces in which something is installed, with those that groups there name, named or are about to name.
func targetsOf(namespaces []string, places map[string]*install.Place) []string {
	out := slices.Clone(namespaces)

	for _, name := range namespaces {
		if p := places[name]; p != nil {
			out = append(out, p.Reach...)
		}
	}

	return slices.DeleteFunc(sorted(out), func(name string) bool { return name == corev1.NamespaceAll })
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// installReading reads one list after the other, until one fails.
type installReading struct {
	*Reader

	snapshot *Snapshot
	err      error
}

// wherever lists a resource everywhere, or if that is forbidden, in each of the namespaces.
func (in *installReading) wherever(ctx context.Context, list client.ObjectList, resource string, namespaces []string) {
	if in.err != nil {
		return
	}

	listed, err := in.Lists(ctx, list, resource, "")
	if err != nil || listed == Complete {
		in.err = err
		in.snapshot.take(list)

		return
	}

	for _, namespace := range namespaces {
		one, _ := list.DeepCopyObject().(client.ObjectList) // A copy has the type of its original.
		in.list(ctx, one, resource, namespace)
	}
}

// rbac lists Roles or RoleBindings in those of the namespaces in which that was not done yet.
func (in *installReading) rbac(ctx context.Context, list client.ObjectList, resource string, namespaces []string) {
	if in.err == nil {
		in.err = in.rbacIn(ctx, in.snapshot, namespaces, list, resource)
	}
}

func (in *installReading) list(ctx context.Context, list client.ObjectList, resource, namespace string) {
	if in.err == nil {
		in.err = in.into(ctx, in.snapshot, list, resource, namespace)
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

// certificatesOf are the Secrets by which operators answer for webhooks, or are about to, by namespace.
func certificatesOf(csvs *unstructured.UnstructuredList, proposed []*unstructured.Unstructured) map[string][]string {
	out, all := map[string][]string{}, slices.Clone(proposed)
	for i := range csvs.Items {
		all = append(all, &csvs.Items[i])
	}

	for _, obj := range all {
		csv, err := install.Read(obj)
		if obj.GetKind() != scope.KindCSV || err != nil {
			continue // Its status says what is wrong with one that cannot be read.
		}

		for _, s := range install.ServingOf(csv) {
			out[csv.Namespace] = append(out[csv.Namespace], s.Secret)
		}
	}

	return out
}

// leftBehind are the Secrets of operators that answered for webhooks once: they stay beside the Service, and go with the version.
func leftBehind(services *corev1.ServiceList) []string {
	var out []string

	for i := range services.Items {
		s := &services.Items[i]
		if slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == scope.KindCSV }) {
			out = append(out, install.SecretOf(s.Name))
		}
	}

	return out
}

func (in *installReading) one(ctx context.Context, obj client.Object, resource, namespace, name string) {
	if in.err != nil || !canBe(name) {
		return
	}

	switch err := in.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); {
	case err == nil:
		in.snapshot.Cluster.Add(obj)
	case apierrors.IsForbidden(err):
		in.Deny(Denied{Verb: "get", Resource: resource, Namespace: namespace})
	case !apierrors.IsNotFound(err):
		in.err = fmt.Errorf("reading %s %s of namespace %s: %w", resource, name, namespace, err)
	}
}
