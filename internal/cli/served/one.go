package served

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// inNamespace is what an overview says of one namespace; what it says of other namespaces is incomplete. It reads that namespace
// and the operator namespaces of the scopes that reach it.
func inNamespace(ctx context.Context, v *reading.Cluster, o *reading.Options, namespace string) (*overview.Overview, error) {
	resources, err := declared(ctx, v, o)
	if err != nil {
		return nil, err
	}

	if err := readOf(ctx, v, resources, namespace); err != nil {
		return nil, err
	}

	scopes, services, err := installsFor(ctx, v, namespace)
	if err != nil {
		return nil, err
	}

	return sumUp(v, scopes, services), nil
}

// readOf reads what the scopes that reach a namespace mean there.
func readOf(ctx context.Context, v *reading.Cluster, resources []client.Object, namespace string) error {
	all := v.Settings.Compile(resources)
	for i := range all {
		all[i] = settled(all[i])
	}

	reaching, err := v.Reaching(ctx, reading.Plain(all), namespace)
	if errors.Is(err, snapshot.ErrElsewhere) {
		return v.Read(ctx, resources)
	}

	if err != nil {
		return err
	}

	scopes := []predict.Scope{}

	for i := range all {
		if reaching[i] {
			scopes = append(scopes, within(all[i], namespace))
		}
	}

	return v.ReadIn(ctx, scopes, namespace)
}

// settled decides whether a scope that may be in the whole cluster or in namespaces is in the one or the others. For an instance
// that names no namespaces, its status says so, if it is about the same generation; then nobody has to look for copies
// everywhere.
func settled(s predict.Scope) predict.Scope {
	instance, is := s.Object.(*operatorsv1alpha1.ScopeInstance)
	if !is || !s.Members.Everywhere || !s.Members.Unconfirmed || instance.Status.ObservedGeneration != instance.Generation {
		return s
	}

	switch instance.Status.Reach {
	case operatorsv1alpha1.ReachCluster:
		s.Members.Unconfirmed = false
	case operatorsv1alpha1.ReachNamespaces:
		s.Members.Everywhere, s.Members.Unconfirmed, s.Members.Kept = false, false, true
	}

	return s
}

// within is a scope as if it had nothing to do with other namespaces.
func within(s predict.Scope, namespace string) predict.Scope {
	isOther := func(name string) bool { return name != namespace }
	s.Members.Named = slices.DeleteFunc(slices.Clone(s.Members.Named), isOther)
	s.Reported = slices.DeleteFunc(slices.Clone(s.Reported), isOther)
	s.Failed = slices.DeleteFunc(slices.Clone(s.Failed), isOther)

	return s
}

// installsFor returns the operators of OperatorGroups that have to do with a namespace, and what is installed beside the scopes
// that reach it: their ClusterServiceVersions say on which resources their operators work.
func installsFor(ctx context.Context, v *reading.Cluster, namespace string) ([]overview.Scope, []overview.Service, error) {
	groups := &operatorsv1.OperatorGroupList{}

	listed, err := v.Need(ctx, groups, "operatorgroups", "")
	if err == nil && listed == snapshot.Forbidden {
		_, err = v.Lists(ctx, groups, "operatorgroups", namespace)
	}

	if err != nil {
		return nil, nil, err
	}

	targets, places := map[string][]string{}, map[string]bool{namespace: true}

	for i := range groups.Items {
		g := &groups.Items[i]
		targets[g.Namespace] = g.Status.Namespaces

		if slices.Contains(g.Status.Namespaces, namespace) || slices.Contains(g.Status.Namespaces, overview.Everywhere) {
			places[g.Namespace] = true
		}
	}

	for i := range v.Scopes {
		if s := &v.Scopes[i].Scope; !s.Explicit() {
			places[s.Key.Namespace] = true
		}
	}

	return installedAt(ctx, v, slices.Sorted(maps.Keys(places)), targets)
}

// installedAt are the ClusterServiceVersions of some namespaces, and whom they serve.
func installedAt(
	ctx context.Context, v *reading.Cluster, namespaces []string, targets map[string][]string,
) (scopes []overview.Scope, services []overview.Service, err error) {
	lists := make([]*unstructured.UnstructuredList, len(namespaces))

	err = v.Each(ctx, "reading what is installed", len(namespaces), func(i int) error {
		lists[i] = scope.NewOLMList(scope.KindCSV)
		_, err := v.Need(ctx, lists[i], "clusterserviceversions", namespaces[i])

		return err
	})
	if err != nil {
		return nil, nil, err
	}

	var unknown []string

	for _, list := range lists {
		for i := range list.Items {
			var isKnown bool
			scopes, services, isKnown = Installed(&list.Items[i], targets, v.ClusterBindings, v.Snapshot.Lacks, scopes, services)
			if !isKnown {
				unknown = append(unknown, CSVName(&list.Items[i]))
			}
		}
	}

	if len(unknown) > 0 {
		v.Notes = append(v.Notes, "whom these serve is unknown, because they cannot be read: "+output.Some(unknown))
	}

	return scopes, services, nil
}
