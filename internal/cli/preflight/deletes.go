package preflight

import (
	"context"
	"maps"
	"slices"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// deletes is what an account must be allowed to delete for a ClusterServiceVersion, where Ambit takes nothing away as itself: the
// versions that it replaces, what these hold in other namespaces, and what it holds itself and is not to have any more;
// Deployments that it does not list any more; and its webhook configurations, which no garbage collection removes with it.
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

	list := scope.NewOLMList(scope.KindCSV)

	if _, err := v.Need(ctx, list, "clusterserviceversions", o.Namespace); err != nil {
		return nil, command.OneLine(err)
	}

	csv = o.asInstalled(csv, list.Items)
	replaced := replacedBy(csv, list.Items)

	places, err := o.unlisted(ctx, v, csv)
	if err != nil {
		return nil, err
	}

	webhooks, err := o.webhooks(ctx, v, csv, replaced)
	if err != nil {
		return nil, err
	}

	places = append(append(places, webhooks...),
		authority.Place{Namespace: o.Namespace, Rules: deleting(olm.GroupName, "clusterserviceversions", replaced)})

	for _, name := range replaced {
		made, err := o.made(ctx, v, name)
		if err != nil {
			return nil, err
		}

		for _, obj := range made {
			// In its own namespace they go with it.
			if live, is := projected.From(obj); is && obj.GetNamespace() != o.Namespace {
				places = append(places, deletingOne(live.Kind, obj.GetNamespace(), obj.GetName()))
			}
		}
	}

	if csv.Status.Phase != olm.CSVPhaseFailed || slices.Contains(replaced, csv.Name) {
		return places, nil // Nothing of it is left anywhere, or it is counted already.
	}

	left, err := o.unwanted(ctx, v, csv, targets)

	return append(places, left...), err
}

// asInstalled is a ClusterServiceVersion as the one of its name in the cluster would be with what it says now.
func (o *Options) asInstalled(csv *olm.ClusterServiceVersion, items []unstructured.Unstructured) *olm.ClusterServiceVersion {
	csv = csv.DeepCopy()
	csv.Namespace, csv.UID = o.Namespace, ""

	for i := range items {
		if items[i].GetName() == csv.Name {
			csv.UID = items[i].GetUID()
		}
	}

	return csv
}

// unlisted is what deleting the Deployments takes that are a version's own and that it does not list any more.
func (o *Options) unlisted(ctx context.Context, v *inquiry, csv *olm.ClusterServiceVersion) ([]authority.Place, error) {
	var list appsv1.DeploymentList

	if err := v.List(ctx, &list, client.InNamespace(o.Namespace)); apierrors.IsForbidden(err) {
		v.Deny(snapshot.Denied{Verb: "list", Resource: "deployments", Namespace: o.Namespace})
	} else if err != nil {
		return nil, command.OneLine(err)
	}

	s := install.Snapshot{Installed: facts.Installed{Deployments: map[string]*appsv1.Deployment{}}}
	for i := range list.Items {
		s.Deployments[list.Items[i].Name] = &list.Items[i]
	}

	going := s.DeploymentsToRemove(csv)
	if csv.Status.Reason == olm.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs {
		going = s.DeploymentsOf(csv)
	}

	names := collect.Map(going, func(d *appsv1.Deployment) string { return d.Name })

	return []authority.Place{{Namespace: o.Namespace, Rules: deleting(appsv1.GroupName, "deployments", names)}}, nil
}

// webhooks is what deleting the webhook configurations takes that a version asks for, and those that were made for it or for the
// versions that it replaces.
func (o *Options) webhooks(
	ctx context.Context, v *inquiry, csv *olm.ClusterServiceVersion, replaced []string,
) ([]authority.Place, error) {
	if v.beyond != nil {
		return nil, nil // None is made.
	}

	named := install.WebhookResources(csv)

	for _, name := range append(slices.Clone(replaced), csv.Name) {
		for resource, list := range map[string]client.ObjectList{
			"validatingwebhookconfigurations": &admissionv1.ValidatingWebhookConfigurationList{},
			"mutatingwebhookconfigurations":   &admissionv1.MutatingWebhookConfigurationList{},
		} {
			items, err := v.marked(ctx, resource, list, compile.CSVOwner(o.Namespace, name))
			if err != nil {
				return nil, err
			}

			for _, item := range items {
				named[resource] = append(named[resource], item.GetName())
			}
		}
	}

	places := make([]authority.Place, 0, len(named))

	for _, resource := range slices.Sorted(maps.Keys(named)) {
		slices.Sort(named[resource])
		places = append(places, authority.Place{
			Rules: deleting(admissionv1.GroupName, resource, slices.Compact(named[resource])),
		})
	}

	return places, nil
}

// marked are the objects that were made for a ClusterServiceVersion, as far as the caller may list them.
func (v *inquiry) marked(
	ctx context.Context, resource string, list client.ObjectList, owner scope.Owner,
) ([]client.Object, error) {
	if err := v.List(ctx, list, client.MatchingLabels{scope.LabelScope: owner.Hash()}); apierrors.IsForbidden(err) {
		v.Deny(snapshot.Denied{Verb: "list", Resource: resource})
	} else if err != nil {
		return nil, command.OneLine(err)
	}

	return snapshot.Objects(list), nil
}

// replacedBy are the versions that are deleted once one has succeeded; it is one of them where another replaces it.
func replacedBy(csv *olm.ClusterServiceVersion, items []unstructured.Unstructured) []string {
	all := []*olm.ClusterServiceVersion{csv}

	for i := range items {
		if install.IsCopy(&items[i]) || items[i].GetName() == csv.Name {
			continue
		}

		other := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: items[i].GetName()}}
		other.Spec.Replaces, _, _ = unstructured.NestedString(items[i].Object, "spec", "replaces")
		all = append(all, other)
	}

	return install.Replaced(csv, all)
}

// unwanted is what deleting the Roles and bindings takes that a ClusterServiceVersion has and is not to have any more, or that
// Ambit replaces, as the planner decides it.
func (o *Options) unwanted(
	ctx context.Context, v *inquiry, csv *olm.ClusterServiceVersion, targets []string,
) ([]authority.Place, error) {
	made, err := o.made(ctx, v, csv.Name)
	if err != nil {
		return nil, err
	}

	once := read.NewOnce(nil)
	once.Install(o.Namespace)

	for _, name := range append([]string{o.Namespace}, targets...) {
		once.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}

	for _, obj := range made {
		once.Add(obj)
	}

	s := compile.ClusterServiceVersion(csv, compile.Install{Targets: targets})
	f, _ := once.Store.Facts(s.Key, time.Now()) // Everything is known: it was listed just now.
	p := plan.New([]scope.Scope{s}, f)

	var places []authority.Place

	for _, c := range slices.Concat(p.Scopes[0].Revoke, p.Scopes[0].Prune, p.Scopes[0].Replaced) {
		if c.Action.TakesAway() {
			places = append(places, deletingOne(c.Key.Kind, c.Namespace, c.Key.Name))
		}
	}

	return places, nil
}

// made are the Roles and bindings that were made for a ClusterServiceVersion, as far as the caller may list them.
func (o *Options) made(ctx context.Context, v *inquiry, name string) ([]client.Object, error) {
	var out []client.Object

	for _, kind := range slices.Concat(projected.RoleKinds(), projected.BindingKinds()) {
		items, err := v.marked(ctx, kind.Resource(), kind.EmptyList(), compile.CSVOwner(o.Namespace, name))
		if err != nil {
			return nil, err
		}

		out = append(out, items...)
	}

	return out, nil
}

func deletingOne(kind projected.Kind, namespace, name string) authority.Place {
	return authority.Place{Namespace: namespace, Rules: deleting(rbacv1.GroupName, kind.Resource(), []string{name})}
}

func deleting(group, resource string, names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}

	return []rbacv1.PolicyRule{{
		APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"delete"},
	}}
}
