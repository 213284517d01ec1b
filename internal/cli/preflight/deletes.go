package preflight

import (
	"context"
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// deletes is what an account must be allowed to delete for a ClusterServiceVersion, where Ambit takes nothing away as itself: the
// versions that it replaces, what these hold in other namespaces, and what it holds itself where it is to have nothing any more.
func (o *Options) deletes(
	ctx context.Context, v *inquiry, csv *olm.ClusterServiceVersion, targets []string,
) ([]authority.Place, error) {
	account := o.subject()
	if account.Kind != rbacv1.ServiceAccountKind || account.Namespace != o.Namespace {
		return nil, nil
	}

	group := &writer.Group{Account: account.Name, Exists: true}
	if v.writers.OfGroup(o.Namespace, group, account.Name).Deletes.User() == "" {
		return nil, nil
	}

	list := install.NewList()

	listed, err := v.Lists(ctx, list, "clusterserviceversions", o.Namespace)
	if err != nil || listed != snapshot.Complete {
		return nil, command.OneLine(err)
	}

	replaced := replacedBy(csv, list.Items)
	places := []authority.Place{{Namespace: o.Namespace, Rules: deleting(olm.GroupName, "clusterserviceversions", replaced)}}

	for _, name := range replaced {
		left, err := o.leftOf(ctx, v, name, []string{o.Namespace})
		if err != nil {
			return nil, err
		}

		places = append(places, left...)
	}

	if csv.Status.Phase != olm.CSVPhaseFailed || slices.Contains(replaced, csv.Name) {
		return places, nil // Nothing of it is left anywhere, or it is counted already.
	}

	keeps := append(slices.Clone(targets), o.Namespace)
	if len(install.ClusterPermissions(csv)) > 0 {
		keeps = append(keeps, "")
	}

	left, err := o.leftOf(ctx, v, csv.Name, keeps)

	return append(places, left...), err
}

// replacedBy are the versions that are deleted once one has succeeded; it is one of them where another replaces it.
func replacedBy(csv *olm.ClusterServiceVersion, items []unstructured.Unstructured) []string {
	all := []*olm.ClusterServiceVersion{csv}

	for i := range items {
		if _, copied := items[i].GetLabels()[olm.CopiedLabelKey]; copied || items[i].GetName() == csv.Name {
			continue
		}

		other := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: items[i].GetName()}}
		other.Spec.Replaces, _, _ = unstructured.NestedString(items[i].Object, "spec", "replaces")
		all = append(all, other)
	}

	return install.Replaced(csv, all)
}

// leftOf is what deleting the Roles and bindings of a ClusterServiceVersion takes, except in some namespaces, of which the empty
// one is the whole cluster. In its own namespace they go with it.
func (o *Options) leftOf(ctx context.Context, v *inquiry, name string, except []string) ([]authority.Place, error) {
	var places []authority.Place

	marked := client.MatchingLabels{scope.LabelScope: compile.CSVOwner(o.Namespace, name).Hash()}

	for resource, list := range map[string]client.ObjectList{
		"roles": &rbacv1.RoleList{}, "rolebindings": &rbacv1.RoleBindingList{},
		"clusterroles": &rbacv1.ClusterRoleList{}, "clusterrolebindings": &rbacv1.ClusterRoleBindingList{},
	} {
		if err := v.List(ctx, list, marked); apierrors.IsForbidden(err) {
			v.Deny(snapshot.Denied{Verb: "list", Resource: resource})
		} else if err != nil {
			return nil, command.OneLine(err)
		}

		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("reading the list of %s: %w", resource, err)
		}

		for _, item := range items {
			if obj, is := item.(client.Object); is && !slices.Contains(except, obj.GetNamespace()) {
				places = append(places, authority.Place{
					Namespace: obj.GetNamespace(), Rules: deleting(rbacv1.GroupName, resource, []string{obj.GetName()}),
				})
			}
		}
	}

	return places, nil
}

func deleting(group, resource string, names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}

	return []rbacv1.PolicyRule{{
		APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"delete"},
	}}
}
