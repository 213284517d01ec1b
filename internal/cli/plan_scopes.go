package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// scopeResources is how the resources of NamespaceScopes of both groups begin.
const scopeResources = "namespacescopes"

// resourcesOf are the scopes to which the proposals can matter.
func resourcesOf(ctx context.Context, v *view, proposals []*proposal) ([]client.Object, error) {
	operatorNamespaces, all, templates := operatorNamespacesOf(proposals)

	var resources []client.Object

	if all {
		var err error
		if resources, err = v.Resources(ctx, nil, templates); err != nil || !v.mayNotListAllScopes() {
			return resources, err
		}

		if len(operatorNamespaces) == 0 {
			return nil, unknown(v.Denied(), "", scopeResources)
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

	for _, obj := range slices.Concat(more, beside) {
		if !slices.ContainsFunc(resources, func(r client.Object) bool { return isSame(r, obj) }) {
			resources = append(resources, obj)
		}
	}

	return resources, nil
}

// besideInstalls are the scopes beside the ClusterServiceVersions of the files, which scopes may inject into. Who may see none of
// them plans for what is installed all the same.
func besideInstalls(ctx context.Context, v *view, proposals []*proposal) ([]client.Object, error) {
	var namespaces []string

	for _, p := range proposals {
		if p.object != nil && p.GroupVersionKind().GroupKind() == files.ClusterServiceVersions {
			namespaces = append(namespaces, p.GetNamespace())
		}
	}

	if len(namespaces) == 0 {
		return nil, nil
	}

	slices.Sort(namespaces)

	out, err := v.Resources(ctx, slices.Compact(namespaces), false)
	if errors.Is(err, snapshot.ErrNotInstalled) {
		return nil, nil
	}

	return out, err
}

func (v *view) mayNotListAllScopes() bool {
	return slices.ContainsFunc(v.Denied(), func(d snapshot.Denied) bool {
		return d.Namespace == "" && strings.HasPrefix(d.Resource, scopeResources)
	})
}

// isSame says whether two objects are versions of one.
func isSame(a, b client.Object) bool {
	if a.GetNamespace() != b.GetNamespace() || a.GetName() != b.GetName() {
		return false
	}

	return kindOf(a) == kindOf(b)
}

// unknown fails where resources of an operator namespace may not be listed, of those whose names begin so. A plan without
// them would be wrong; without those of OLM it is not, because the manager need not see them, either.
func unknown(denied []snapshot.Denied, namespace, prefix string) error {
	var hidden []string

	for _, d := range denied {
		if d.Verb == "list" && d.Namespace == namespace && d.Resource != "clusterserviceversions" &&
			strings.HasPrefix(d.Resource, prefix) {
			hidden = append(hidden, d.Resource)
		}
	}

	switch {
	case len(hidden) == 0:
		return nil
	case namespace == "":
		return fmt.Errorf("what scopes would do is unknown, because you may not list %s in the whole cluster; "+
			"let somebody run this who may, such as an administrator of the cluster", strings.Join(hidden, ", "))
	default:
		return fmt.Errorf("what the scopes of namespace %s would do is unknown, because you may not list its %s; "+
			"let somebody run this who may, such as an administrator of the namespace", namespace, strings.Join(hidden, ", "))
	}
}
