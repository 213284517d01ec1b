package plan

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// resourcesOf are the scopes to which the proposals can matter.
func resourcesOf(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]client.Object, error) {
	operatorNamespaces, all, templates := operatorNamespacesOf(proposals)

	var resources []client.Object

	if all {
		var err error
		if resources, err = v.Resources(ctx, nil, templates); err != nil || !v.MayNotListAllScopes() {
			return resources, err
		}

		if len(operatorNamespaces) == 0 {
			return nil, reading.Unknown(reading.Unread(v.Denied(), "", reading.ScopeResources), "")
		}

		// Whoever may not see all scopes may see those of the namespaces of the files.
		templates = false
	}

	more, err := v.Resources(ctx, operatorNamespaces, templates)
	if err != nil {
		return nil, err
	}

	beside, err := besideInstalls(ctx, v, proposals)
	if err != nil {
		return nil, err
	}

	around, err := reached(ctx, v, proposals)
	if err != nil {
		return nil, err
	}

	for _, obj := range slices.Concat(more, beside, around) {
		if !slices.ContainsFunc(resources, func(r client.Object) bool { return isSame(r, obj) }) {
			resources = append(resources, obj)
		}
	}

	return resources, nil
}

// besideInstalls returns the scopes in the namespaces of the files' ClusterServiceVersions, because scopes may inject into those.
// Where the cluster knows no scopes, what is installed is planned all the same.
func besideInstalls(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]client.Object, error) {
	namespaces := namespacesOf(proposals, func(p *proposal) bool {
		return p.object != nil && p.GroupVersionKind().GroupKind() == files.ClusterServiceVersions
	})
	if len(namespaces) == 0 {
		return nil, nil
	}

	out, err := v.Resources(ctx, namespaces, false)
	if errors.Is(err, snapshot.ErrNotInstalled) {
		return nil, nil
	}

	return out, err
}

// isSame says whether two objects are versions of one.
func isSame(a, b client.Object) bool {
	if a.GetNamespace() != b.GetNamespace() || a.GetName() != b.GetName() {
		return false
	}

	return reading.ScopeKind(a) == reading.ScopeKind(b)
}
