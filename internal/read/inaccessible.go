package read

import (
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// Entry is what opens a namespace that is watched by itself.
func Entry() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"list", "watch"},
	}}
}

// Inaccessible makes of facts what they are where some namespaces are closed. What f shares with others stays as it is.
func Inaccessible(f *facts.Facts, closed map[string]struct{}) {
	if len(closed) == 0 {
		return
	}

	f.Namespaces, f.Projected, f.Legacy = maps.Clone(f.Namespaces), maps.Clone(f.Projected), maps.Clone(f.Legacy)
	for name := range closed {
		f.Namespaces[name] = facts.Namespace{Closed: noAccess}
	}

	withoutClosed(f.Projected, f.Namespaces)
	withoutClosed(f.Legacy, f.Namespaces)
}
