package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/convert"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

var errNoOLM = errors.New("the cluster does not know ClusterServiceVersions; OLM's definitions are not installed")

// fromFiles converts the NamespaceScopes of the legacy group that the files hold.
func (o *Options) fromFiles(ctx context.Context, v *reading.Cluster) ([]scope.Object, []string, error) {
	documents, err := files.Read(o.Files, o.Recursive)
	if err != nil {
		return nil, nil, err
	}

	var (
		objects []scope.Object
		notes   []string
		left    []string
	)

	for _, d := range documents {
		obj, err := files.Typed(v.Scheme(), d.Unstructured)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.Source, err)
		}

		nss, is := obj.(*namespacescopev1alpha1.NamespaceScope)
		if !is {
			left = append(left, output.Title(d, d.GetKind())+" of "+d.GetAPIVersion())

			continue
		}

		if err := o.Place(nss); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.Source, err)
		}

		accounts, err := accountsOf(ctx, v, nss)
		if err != nil {
			return nil, nil, err
		}

		converted, said := convert.FromNamespaceScopeV1alpha1(nss, accounts)
		objects, notes = append(objects, converted), append(notes, said...)
	}

	if len(objects) == 0 {
		return nil, nil, fmt.Errorf("no NamespaceScope of %s was found in the files; they hold %s",
			namespacescopev1alpha1.GroupVersion, cmp.Or(output.Some(left), "nothing"))
	}

	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("left out, because only NamespaceScopes of %s are converted: %s",
			namespacescopev1alpha1.GroupVersion, output.Some(left)))
	}

	return objects, append(notes, "the older resources are not deleted; delete them once the new ones are Ready, and nothing is "+
		"without permissions in between"), nil
}

// accountsOf returns the service accounts in the namespace of a scope that names none, and so projects all of them.
func accountsOf(ctx context.Context, v *reading.Cluster, nss *namespacescopev1alpha1.NamespaceScope) ([]string, error) {
	if len(nss.Spec.ProjectedServiceAccounts) > 0 {
		return nil, nil
	}

	var list corev1.ServiceAccountList

	listed, err := v.Need(ctx, &list, "serviceaccounts", nss.Namespace)
	if err != nil || listed != snapshot.Complete || len(list.Items) == 0 {
		return nil, err
	}

	return collect.Map(list.Items, func(s corev1.ServiceAccount) string { return s.Name }), nil
}

// fromCSV converts a ClusterServiceVersion of the cluster.
func (o *Options) fromCSV(ctx context.Context, v *reading.Cluster) ([]scope.Object, []string, error) {
	raw := scope.NewOLM(scope.KindCSV)

	err := v.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.CSV}, raw)

	switch {
	case meta.IsNoMatchError(err):
		return nil, nil, errNoOLM
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("there is no ClusterServiceVersion %s in namespace %s; see kubectl get csv -n %s", o.CSV,
			o.Namespace, o.Namespace)
	case err != nil:
		return nil, nil, fmt.Errorf("reading ClusterServiceVersion %s/%s: %w", o.Namespace, o.CSV, err)
	}

	csv, err := install.Read(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("reading ClusterServiceVersion %s/%s: %w", o.Namespace, o.CSV, err)
	}

	if install.IsCopy(csv) {
		return nil, nil, fmt.Errorf("ClusterServiceVersion %s/%s is a copy that OLM made; import the one of namespace %s", o.Namespace,
			o.CSV, csv.Labels[olmv1alpha1.CopiedLabelKey])
	}

	groups, err := operatorGroups(ctx, v, o.Namespace)
	if err != nil {
		return nil, nil, err
	}

	group, err := convert.GroupOf(csv, groups)
	if err != nil {
		return nil, nil, fmt.Errorf("ClusterServiceVersion %s/%s: %w", o.Namespace, o.CSV, err)
	}

	objects, notes, err := convert.ClusterServiceVersion(csv, group)
	if err != nil {
		return nil, nil, fmt.Errorf("ClusterServiceVersion %s/%s: %w", o.Namespace, o.CSV, err)
	}

	taken, err := takenName(ctx, v, objects, csv.Namespace)
	if err != nil || taken == "" {
		return objects, notes, err
	}

	csv.Name = csv.Namespace + "." + csv.Name
	taken = fmt.Sprintf("%s is for something else than namespace %s, so what is made here is called %s", taken, csv.Namespace,
		csv.Name)

	objects, notes, err = convert.ClusterServiceVersion(csv, group)

	return objects, append(notes, taken), err
}

// takenName names a ScopeTemplate or ScopeInstance among the objects that the cluster has for something else: they have no
// namespace, and an operator is often installed in several. Applied under that name, what is converted would take rights of
// others. It is empty where none is taken, or where the caller may not look.
func takenName(ctx context.Context, v *reading.Cluster, objects []scope.Object, namespace string) (string, error) {
	for _, obj := range objects {
		there, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
		title := output.Title(obj, obj.GetObjectKind().GroupVersionKind().Kind)
		err := v.Get(ctx, client.ObjectKeyFromObject(obj), there)

		switch {
		case apierrors.IsForbidden(err):
			resource, _ := meta.UnsafeGuessKindToResource(obj.GetObjectKind().GroupVersionKind())
			v.Deny(snapshot.Denied{Verb: "get", Resource: resource.Resource})
		case err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err):
			return "", fmt.Errorf("looking for %s: %w", title, err)
		case err == nil && !isFor(there, namespace):
			return title, nil
		}
	}

	return "", nil
}

// isFor says whether what is there gives something to accounts of a namespace, and to nobody else. Of an instance, its template
// says that, which is looked at by itself if it has the instance's name.
func isFor(there client.Object, namespace string) bool {
	switch there := there.(type) {
	case *operatorsv1alpha1.ScopeTemplate:
		var subjects []rbacv1.Subject
		for _, bind := range compile.ScopeTemplate(there, false).Binds {
			subjects = append(subjects, bind.Subjects...)
		}

		return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Namespace != namespace })
	case *operatorsv1alpha1.ScopeInstance:
		return there.Spec.ScopeTemplateName == there.Name
	default:
		return true
	}
}

// operatorGroups returns the OperatorGroups of a namespace. They are read as Ambit's own type, which keeps a selector as it was
// written.
func operatorGroups(ctx context.Context, v *reading.Cluster, namespace string) ([]operatorsv1.OperatorGroup, error) {
	var list operatorsv1.OperatorGroupList

	err := v.List(ctx, &list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, errNoOLM
	}

	if err != nil {
		return nil, fmt.Errorf("listing the OperatorGroups of namespace %s: %w", namespace, err)
	}

	return list.Items, nil
}
