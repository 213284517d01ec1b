package plan

import (
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// reached are the scopes that have to do with the namespaces of roles and bindings: a role or binding may be a copy, an
// authorization, or a right of the account that writes for a scope.
func reached(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]client.Object, error) {
	namespaces := namespacesOf(proposals, func(p *proposal) bool {
		switch p.object.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding:
			return true
		default:
			return false
		}
	})
	if len(namespaces) == 0 {
		return nil, nil
	}

	all, err := v.Resources(ctx, nil, true)
	if errors.Is(err, snapshot.ErrNotInstalled) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}

	compiled := v.Settings.Compile(all)
	out := map[client.Object]struct{}{}

	for _, namespace := range namespaces {
		reaches, err := v.Reaching(ctx, reading.Plain(compiled), namespace)
		if errors.Is(err, snapshot.ErrElsewhere) {
			return all, nil
		} else if err != nil {
			return nil, err
		}

		add(out, compiled, reaches)
	}

	return slices.DeleteFunc(all, func(obj client.Object) bool {
		_, is := out[obj]

		return !is
	}), nil
}

// add adds the resources that reach a namespace. Templates and instances are planned together, so one of them brings all.
func add(out map[client.Object]struct{}, compiled []predict.Scope, reaches []bool) {
	explicit := false
	for i := range compiled {
		explicit = explicit || reaches[i] && compiled[i].Explicit()
	}

	for i := range compiled {
		if reaches[i] || explicit && compiled[i].Explicit() {
			out[compiled[i].Object] = struct{}{}
		}
	}
}
