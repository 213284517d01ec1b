package plan

import (
	"context"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// Installs are the results for OLM's kinds.
type Installs struct {
	// Changes are what would be written.
	Changes []simulation.Change
	// statuses are those that would change, and those of the objects in the files.
	statuses []Install
	// grants are the Roles and bindings that would grant what is missing.
	grants []scope.Object
	// After are the objects of OLM's kinds that would be there.
	After []simulation.Change
	// names are the names that differ from those in memory; plans replaces those of InstallPlans in texts.
	names map[simulation.Key]string
	plans *strings.Replacer
}

// families are the kinds of OLM that Ambit serves, each with the family in which it is reconciled.
//
//nolint:gochecknoglobals // A struct can be no constant.
var families = map[schema.GroupKind]scope.Family{
	files.OperatorGroups: scope.Installs, files.ClusterServiceVersions: scope.Installs,
	{Group: olm.GroupName, Kind: olm.SubscriptionKind}:  scope.Catalogs,
	{Group: olm.GroupName, Kind: olm.CatalogSourceKind}: scope.Catalogs,
	{Group: olm.GroupName, Kind: olm.InstallPlanKind}:   scope.Catalogs,
}

// isServedKind says whether a kind is one of OLM's that Ambit serves.
func isServedKind(kind schema.GroupKind) bool {
	_, is := families[kind]

	return is
}

// asItIs keeps objects of OLM's kinds untyped: the Go types refuse some of what the CRDs accept.
func (p *proposer) asItIs(obj *unstructured.Unstructured) (client.Object, error) {
	if isServedKind(obj.GroupVersionKind().GroupKind()) {
		return obj, nil
	}

	return files.Typed(p.Scheme(), obj)
}

// installNamespaces are those in which something is installed that the proposals can matter to, sorted.
func installNamespaces(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]string, error) {
	var out []string

	places := map[string]struct{}{}

	for _, p := range proposals {
		switch {
		case p.object == nil || isScope(p.object) && p.GetNamespace() == "":
		case isServedKind(p.GroupVersionKind().GroupKind()):
			out = append(out, p.GetNamespace())
		default:
			places[p.GetNamespace()] = struct{}{} // A cluster-scoped object can matter to every namespace.
		}
	}

	if _, everywhere := places[""]; everywhere {
		places = map[string]struct{}{"": {}}
	}

	groups, err := groupsFor(ctx, v, sortedKeys(places))
	if err != nil {
		return nil, err
	}

	for _, place := range sortedKeys(places) {
		csvs := scope.NewOLMList(scope.KindCSV)
		if _, err := v.Need(ctx, csvs, "clusterserviceversions", place); err != nil {
			return nil, err
		}

		for i := range csvs.Items {
			out = append(out, csvs.Items[i].GetNamespace())
		}

		for i := range groups {
			if mayWorkIn(&groups[i], place) {
				out = append(out, groups[i].Namespace)
			}
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(out))), nil
}

// groupsFor returns all OperatorGroups, or those of some namespaces for a caller who may not list all.
func groupsFor(ctx context.Context, v *reading.Cluster, places []string) ([]operatorsv1.OperatorGroup, error) {
	if len(places) == 0 {
		return nil, nil
	}

	var all operatorsv1.OperatorGroupList

	listed, err := v.Need(ctx, &all, "operatorgroups", corev1.NamespaceAll)
	if err != nil || listed != snapshot.Forbidden {
		return all.Items, err
	}

	var out []operatorsv1.OperatorGroup

	for _, place := range places {
		var here operatorsv1.OperatorGroupList
		if _, err := v.Lists(ctx, &here, "operatorgroups", place); err != nil {
			return nil, err
		}

		out = append(out, here.Items...)
	}

	return out, nil
}

// mayWorkIn says whether the operators of a group may work in a namespace; the empty name stands for all of them.
func mayWorkIn(g *operatorsv1.OperatorGroup, place string) bool {
	return place == corev1.NamespaceAll || place == g.Namespace || slices.ContainsFunc(install.Reach(g), func(target string) bool {
		return target == place || target == corev1.NamespaceAll
	})
}

func installsOf(
	c *simulation.Cluster, s *simulation.Simulation, namespaces []string, proposals []*proposal,
) (out *Installs, err error) {
	out = &Installs{}
	if out.Changes, err = c.Changes(); err != nil {
		return nil, err
	}

	if out.After, err = c.Statuses(namespaces); err != nil {
		return nil, err
	}

	lacking := s.Lacking()
	out.findNames(proposals)

	unserved := s.Unserved

	for _, change := range out.After {
		if unserved[families[change.Key.Kind].In(change.Key.Namespace)] != nil {
			continue // What its status would say is unknown.
		}

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
		namespace, name, is := scope.AccountOfUser(user)
		if !is {
			continue
		}

		account := preflight.Account(namespace, name)
		for _, place := range lacking[user] {
			out.grants = append(out.grants, preflight.Grant(account, place.Namespace, authority.Merge(place.Rules))...)
		}
	}

	return out, nil
}

// brought are the new ClusterServiceVersions.
func (i *Installs) brought() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured

	for _, c := range i.After {
		if c.Before == nil && c.Key.Kind.Kind == scope.KindCSV {
			out = append(out, c.After)
		}
	}

	return out
}

// refused says whether something would be refused in some namespaces, with nil in any, or fails that does not now.
func (i *Installs) refused(in sets.Set[string]) bool {
	return slices.ContainsFunc(i.grants, func(g scope.Object) bool { return in == nil || in.Has(g.GetNamespace()) }) ||
		slices.ContainsFunc(i.statuses, func(s Install) bool { return s.Refused })
}
