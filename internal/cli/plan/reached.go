package plan

import (
	"context"
	"errors"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// reached are the scopes that have to do with the namespaces of roles and bindings: a role or binding may be a copy, an
// authorization, or a right of the account that writes for a scope. By its marks it may be one that a scope removes.
func reached(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]client.Object, error) {
	there := map[string][]client.Object{}

	for _, p := range proposals {
		switch p.object.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding:
			there[p.GetNamespace()] = append(there[p.GetNamespace()], p.object)
			if p.live != nil {
				there[p.GetNamespace()] = append(there[p.GetNamespace()], p.live)
			}
		}
	}

	if len(there) == 0 {
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

	for _, namespace := range slices.Sorted(maps.Keys(there)) {
		reaches, err := v.Reaching(ctx, reading.Plain(compiled), namespace, there[namespace]...)
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
