package snapshot

import (
	"context"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Sources reads what decides which objects an operator namespace projects, and nothing else: whoever grants its operators access
// need not be able to read more. ClusterRoles count as unknown.
func (r *Reader) Sources(ctx context.Context, operatorNamespace string) (*facts.Facts, error) {
	key := scope.NamespaceScopes.In(operatorNamespace)
	s := r.newSnapshot([]scope.Scope{{Key: key}})

	lists := podsAndAccounts()
	lists["roles"], lists["rolebindings"] = &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	resources := slices.Sorted(maps.Keys(lists))

	err := r.Each(ctx, "reading the namespace", len(resources), func(i int) error {
		return r.into(ctx, s, lists[resources[i]], resources[i], operatorNamespace)
	})
	if err != nil {
		return nil, err
	}

	return s.Facts(key), nil
}
