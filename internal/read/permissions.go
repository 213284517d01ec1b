package read

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxChanges is how many changes of permissions are remembered: some for each of ten thousand namespaces. ClusterRoleBindings may
// name more namespaces than that.
const maxChanges = 30_000

// permissions are those in a namespace or, if in is empty, those by bindings in the whole cluster: of the accounts of a namespace
// or, if of is empty as well, of everybody. bound are those by any binding of a ClusterRole in any namespace.
type permissions struct {
	in, of string
	bound  bool
}

// permissionsChanged is called with the store locked.
func (s *Store) permissionsChanged(namespace string) {
	s.noteChange(permissions{in: namespace})
	s.listener.PermissionsChanged(namespace)
}

func (s *Store) noteChange(of permissions) {
	// Where those of so many changed, it is as if those of everybody had.
	if len(s.changedAt) >= maxChanges {
		clear(s.changedAt)
		s.changedAt[permissions{}] = time.Now()
	}

	s.changedAt[of] = time.Now()
}

// PermissionsChangedAt is when a Role, a binding or a ClusterRole last changed by which the accounts of a namespace may hold more
// or less in another; zero when nothing did since the watches began. With an empty name it is about Ambit itself.
func (s *Store) PermissionsChangedAt(namespace, accountsOf string) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()

	at := slices.MaxFunc([]time.Time{
		s.changedAt[permissions{in: namespace}], s.changedAt[permissions{of: accountsOf}], s.changedAt[permissions{}],
	}, time.Time.Compare)
	if bound := s.changedAt[permissions{bound: true}]; namespace != scope.Cluster && bound.After(at) {
		return bound
	}

	return at
}

// roleChanged says that a ClusterRole gives those something else who are bound to it, or came or went.
func (s *Store) roleChanged(of *bound) {
	s.clusterPermissionsChanged(facts.ClusterPermissions{Bound: true}, of)
}

// clusterPermissionsChanged says that whoever is bound may hold more or less in the whole cluster.
func (s *Store) clusterPermissionsChanged(changed facts.ClusterPermissions, of *bound) {
	changed.Namespaces, changed.Everybody = of.accountsOf, of.everybody || of.self

	for namespace := range of.accountsOf {
		s.noteChange(permissions{of: namespace})
	}

	if changed.Everybody {
		s.noteChange(permissions{})
	}

	if changed.Bound {
		s.noteChange(permissions{bound: true})
	}

	s.listener.ClusterPermissionsChanged(changed)
}

// mayBeSelf says whether Ambit may be among those who are found under a key. Groups of an account are known, and those of another
// user are not.
func (s *Store) mayBeSelf(key grantKey) bool {
	return s.self.name == "" || key == s.self || s.self.kind != rbacv1.ServiceAccountKind && key.kind == rbacv1.GroupKind
}
