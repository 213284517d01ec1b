package plan

import (
	"context"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// Installs are the result of OLM's kinds.
type Installs struct {
	// Changes are what would be written.
	Changes []simulation.Change
	// statuses are those that differ, and those of the files.
	statuses []Install
	grants   []client.Object
	// After are the objects of OLM's kinds that would be there.
	After []simulation.Change
	// names are what is called otherwise than in memory, and plans those of InstallPlans, in text.
	names map[simulation.Key]string
	plans *strings.Replacer
}

// isServedKind says whether a kind is one of OLM's that Ambit serves.
func isServedKind(kind schema.GroupKind) bool {
	if kind.Group != olm.GroupName {
		return false
	}

	switch kind.Kind {
	case operatorsv1.OperatorGroupKind, scope.KindCSV, olm.SubscriptionKind, olm.CatalogSourceKind, olm.InstallPlanKind:
		return true
	default:
		return false
	}
}

// isForScopes says whether plans of scopes look at what a proposal would make: of OLM's kinds, that is a ClusterServiceVersion.
func (d *proposal) isForScopes() bool {
	_, isDefinition := d.object.(*apiextensionsv1.CustomResourceDefinition)
	kind := d.GroupVersionKind().GroupKind()

	return d.object != nil && !isDefinition && (!isServedKind(kind) || kind.Kind == scope.KindCSV)
}

// asItIs keeps objects of OLM's kinds without types: these refuse some of what the definitions accept.
func (p *proposer) asItIs(obj *unstructured.Unstructured) (client.Object, error) {
	if isServedKind(obj.GroupVersionKind().GroupKind()) {
		return obj, nil
	}

	return files.Typed(p.Scheme(), obj)
}

func isRBAC(p *proposal) bool {
	return p.object != nil && p.GroupVersionKind().Group == rbacv1.GroupName
}

// installNamespaces are those in which something is installed that the proposals can matter to, sorted.
func installNamespaces(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]string, error) {
	var (
		out    []string
		others []*proposal
	)

	for _, p := range proposals {
		switch {
		case p.object == nil || isScope(p.object):
		case isServedKind(p.GroupVersionKind().GroupKind()):
			out = append(out, p.GetNamespace())
		default:
			others = append(others, p)
		}
	}

	if len(others) > 0 {
		there, err := installedIn(ctx, v, others)
		if err != nil {
			return nil, err
		}

		out = append(out, there...)
	}

	slices.Sort(out)

	return slices.Compact(out), nil
}

// installedIn are the namespaces with an OperatorGroup or a ClusterServiceVersion, as far as a proposal is about them.
func installedIn(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]string, error) {
	var all []string

	for list, resource := range map[client.ObjectList]string{
		&operatorsv1.OperatorGroupList{}: "operatorgroups", install.NewList(): "clusterserviceversions",
	} {
		if _, err := v.Lists(ctx, list, resource, ""); err != nil {
			return nil, err
		}

		reading.Visit(list, func(obj client.Object) { all = append(all, obj.GetNamespace()) })
	}

	return slices.DeleteFunc(all, func(namespace string) bool {
		return !slices.ContainsFunc(proposals, func(p *proposal) bool {
			switch p.object.(type) {
			case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *apiextensionsv1.CustomResourceDefinition:
				return true
			default:
				return p.GetNamespace() == namespace
			}
		})
	}), nil
}

func installsOf(c *simulation.Cluster, s *simulation.Simulation, namespaces []string, proposals []*proposal) *Installs {
	out := &Installs{Changes: c.Changes(), After: c.Statuses(namespaces)}
	lacking := s.Lacking()
	out.findNames(proposals)

	for _, change := range out.After {
		before, after := Status(change.Before), Status(change.After)
		after.Before = before.Phase

		inFiles := slices.ContainsFunc(proposals, func(p *proposal) bool {
			return p.GetNamespace() == change.Key.Namespace && p.GetName() == change.Key.Name &&
				p.GroupVersionKind().GroupKind() == change.Key.Kind
		})
		if inFiles || !before.isAs(&after) {
			out.name(&after)
			out.statuses = append(out.statuses, after)
		}
	}

	for _, user := range sortedKeys(lacking) {
		namespace, name, is := accountOfUser(user)
		if !is {
			continue
		}

		subject := preflight.Subject{Subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
		for _, place := range lacking[user] {
			out.grants = append(out.grants, preflight.Grant(subject, place.Namespace, authority.Merge(place.Rules))...)
		}
	}

	return out
}

func accountOfUser(user string) (namespace, name string, is bool) {
	account, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, _ = strings.Cut(account, ":")

	return namespace, name, is
}

// refused says whether something would be refused, or fails.
func (i *Installs) refused() bool {
	return i != nil && (len(i.grants) > 0 || slices.ContainsFunc(i.statuses, func(s Install) bool { return s.Refused }))
}
