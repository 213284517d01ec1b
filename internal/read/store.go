// Package read knows what is in the cluster. It watches, keeps records of what the planner needs, and hands them out as
// facts; it decides nothing.
package read

import (
	"maps"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Listener is notified of changes. Its methods are called with the store locked: they must not block or call back.
type Listener interface {
	// KeyChanged says that a plan for the reconcile key may now differ. The zero key, to which meaningless marks point, belongs to
	// nobody.
	KeyChanged(reconcileKey scope.Key)
	// KeyUnblocked says that a plan for the reconcile key may now differ by what has failed so far.
	KeyUnblocked(reconcileKey scope.Key)
	// NamespaceChanged says that a namespace appeared, disappeared, changed its labels or began to terminate. before is
	// nil when it is new, after when it is gone.
	NamespaceChanged(name string, before, after *facts.Namespace)
	// PermissionsChanged says that a Role or RoleBinding that is not Ambit's changed in a namespace: what was refused there may now
	// be allowed, and what stood in the way may be gone.
	PermissionsChanged(namespace string)
	// ClusterPermissionsChanged says the same of a ClusterRole or ClusterRoleBinding.
	ClusterPermissionsChanged(of facts.ClusterPermissions)
	// ClusterChanged says that plans for these keys, or for all, may now differ because of what holds in the whole cluster, and that
	// nobody loses anything while they wait.
	ClusterChanged(keys []scope.Key, everybody bool)
	// EverythingChanged says that any plan may now differ.
	EverythingChanged()
}

// Store holds the records of all watches.
type Store struct {
	mu       sync.RWMutex
	listener Listener

	namespaces   table[facts.Namespace]
	clusterRoles clusterTable
	// ruleSets are the ClusterRoles of which it is known what they say, but for small ones.
	ruleSets *allowance
	// clusterBindings matter by what they grant, so that each change may allow somebody something.
	clusterBindings clusterTable
	grants          grants
	// self is the key of whoever Ambit is; empty where nobody said.
	self      grantKey
	projected projectedTable
	// operatorNamespaces are the namespaces that hold a scope.
	operatorNamespaces map[string]*operatorNamespace
	// installs are the namespaces in which something is installed.
	installs map[string]*installs
	// catalogs are the ConfigMaps that are watched as catalogs.
	catalogs map[types.NamespacedName]*catalogWatch

	// webhooks are the webhook configurations of CSVs, by kind.
	webhooks map[string]*table[webhookRecord]
	// definitions are those of which it is watched whether they are there, by name; olmAbsent says that the one of
	// ClusterServiceVersions is known not to be.
	definitions map[string]*definition
	olmAbsent   bool

	// accesses are to the namespaces that are watched one by one, by the reconcile key that wants them; nil where everything is
	// watched. closed counts those that are closed, by operator namespace.
	accesses map[scope.Key]map[string]*access
	closed   map[string]int

	// changedAt is when permissions last changed.
	changedAt map[permissions]time.Time

	// waiting counts the cluster-wide watches that have not listed yet.
	waiting int
}

// NewStore returns an empty store that notifies the listener of every change.
func NewStore(l Listener) *Store {
	s := &Store{
		listener: l, operatorNamespaces: map[string]*operatorNamespace{}, installs: map[string]*installs{},
		catalogs: map[types.NamespacedName]*catalogWatch{}, changedAt: map[permissions]time.Time{},
		closed:   map[string]int{},
		grants:   grants{by: namesBy[grantKey]{}, of: namesBy[string]{}, large: newAllowance(maxSubjects)},
		ruleSets: newAllowance(maxRuleSets),
	}
	s.projected.foreign = newKept(maxForeign, func(role projectedKey) projectedKey { return role })
	s.projected.authorizations = newKept(maxAuthorizations, func(a authorizationRecord) string { return a.operatorNamespace })
	s.projected.authorizationRoles = newKept(maxAuthorizations, func(r authorizationRole) string { return r.operatorNamespace })
	s.projected.authorizationRoles.room = maxGrantedIn
	s.projected.authorizationRoles.sizeOf = func(r authorizationRole) int { return len(r.rules) }
	s.projected.legacy = newKept(0, func(l facts.Legacy) string { return l.Mark })

	s.newWebhooks()
	s.newLegacy()
	s.projected.changed = func(in bucket) { l.KeyChanged(in.key) }
	s.projected.foreign.changed = func(role projectedKey) {
		if _, in, known := s.projected.find(role); known {
			s.projected.changed(in)
		}
	}
	s.projected.authorizations.changed = func(operatorNamespace string) {
		s.changed(scope.NamespaceScopes.In(operatorNamespace))

		// Elsewhere what is installed does not go with an authorization.
		if s.accesses != nil {
			s.changed(scope.Installs.In(operatorNamespace))
		}
	}
	s.projected.authorizationRoles.changed = s.projected.authorizations.changed
	s.namespaces.changed = func(key types.NamespacedName, before, after *facts.Namespace) {
		if s.waiting == 0 {
			l.NamespaceChanged(key.Name, before, after)
		}
	}
	s.clusterRoles.changed, s.clusterBindings.changed = s.clusterRoleChanged, s.clusterBindingChanged

	return s
}

// Facts returns what is known for a reconcile key with these watch lists, and whether everything that it needs has been
// listed.
func (s *Store) Facts(reconcileKey scope.Key, now time.Time, lists ...string) (*facts.Facts, bool) {
	s.mu.Lock() // The projected objects are lent, which is noted in the table.
	defer s.mu.Unlock()

	if !s.isListed(reconcileKey) {
		return nil, false
	}

	f := &facts.Facts{Key: reconcileKey, Now: now}

	// Subscriptions are not compiled to scopes: nothing is projected for them.
	if reconcileKey.Family == scope.Catalogs {
		f.Namespaces = s.namespaces.byName()

		return f, true
	}

	if s.accesses != nil {
		var decided bool
		if f.Namespaces, decided = s.inAccessible(reconcileKey); !decided {
			return nil, false
		}
	} else {
		s.everything(f)
	}

	f.Projected = s.projected.of(reconcileKey)
	f.Foreign = s.projected.foreignOf(reconcileKey)
	f.Names = s.projected.names
	f.Lost = s.projected.lost.of(bucket{key: reconcileKey})

	s.inOperatorNamespace(f, lists)

	if s.accesses != nil {
		withoutClosed(f.Projected, f.Namespaces)
		withoutClosed(f.Legacy, f.Namespaces)
	}

	return f, true
}

// inOperatorNamespace fills in what the namespace of the key holds, and what others hold for its accounts.
func (s *Store) inOperatorNamespace(f *facts.Facts, lists []string) {
	switch namespace := f.Key.Namespace; f.Key.Family {
	case scope.NamespaceScopes:
		f.OperatorNamespace = s.operatorNamespaces[namespace].facts()
		f.OperatorNamespace.Webhooks = s.webhooksOf(namespace)
		f.OperatorNamespace.Terminating = f.Namespaces[namespace].Terminating
		f.Legacy = s.legacy(namespace, lists)
		f.Authorizations = s.projected.authorizationsOf(namespace)
	case scope.Installs:
		f.Installed = s.installs[namespace].facts()
		f.Installed.Webhooks = s.installedWebhooks(namespace)
		f.OperatorNamespace.Terminating = f.Namespaces[namespace].Terminating

		// Elsewhere what is installed does not go with an authorization.
		if s.accesses != nil {
			f.Authorizations = s.projected.authorizationsOf(namespace)
		}
	case scope.Templates, scope.Catalogs: // There is no namespace, or nothing in it that a plan needs.
	}
}

// isListed says whether everything that facts for a reconcile key are made of was listed.
func (s *Store) isListed(reconcileKey scope.Key) bool {
	if s.waiting > 0 {
		return false
	}

	switch reconcileKey.Family {
	case scope.NamespaceScopes, scope.Installs:
		in := s.records(reconcileKey)

		return in != nil && in.waiting == 0
	case scope.Templates, scope.Catalogs:
		return true
	default:
		return false
	}
}

// everything fills in what is watched cluster-wide.
func (s *Store) everything(f *facts.Facts) {
	f.Namespaces = s.namespaces.byName()
	f.ClusterRoles = make(map[string]facts.ClusterRole, len(s.clusterRoles.rows))

	for key, r := range s.clusterRoles.rows {
		f.ClusterRoles[key.Name] = facts.ClusterRole{Made: r.record.made, Aggregated: r.record.aggregated}
	}
}

// Exists says whether a namespace is there and is not on its way out, as far as is known.
func (s *Store) Exists(namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	if s.accesses != nil {
		return true // Where namespaces may not be listed, nobody asks about others than those that are served.
	}

	ns, exists := s.namespaces.rows[types.NamespacedName{Name: namespace}]

	return exists && !ns.record.Terminating
}

// Self tells the store which user Ambit is. It is called before the first watch begins.
func (s *Store) Self(user string) {
	who := scope.Holder(&rbacv1.Subject{Kind: rbacv1.UserKind, Name: user})
	s.self = keyOfSubject(&who)
}

// Name gives the store the names by which it knows Ambit's own objects. It is called before the first watch begins.
func (s *Store) Name(names *projected.Names) { s.projected.names = names }

// Holding returns the namespaces that hold projected objects of a reconcile key, sorted.
func (s *Store) Holding(reconcileKey scope.Key) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()

	held := map[string]struct{}{}

	for _, in := range s.projected.bucketsOf(reconcileKey) {
		for namespace := range s.projected.buckets[in] {
			held[namespace] = struct{}{}
		}
	}

	return slices.Sorted(maps.Keys(held))
}

// Size counts the projected objects of a reconcile key, for the metrics.
func (s *Store) Size(reconcileKey scope.Key) int {
	s.mu.RLock()
	defer s.mu.RUnlock()

	return s.projected.size(reconcileKey)
}

// Installed are the keys of what is installed to which projected objects point.
func (s *Store) Installed() []scope.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()

	keys := map[scope.Key]struct{}{}

	for in := range s.projected.buckets {
		if in.key.Family == scope.Installs {
			keys[in.key] = struct{}{}
		}
	}

	return slices.Collect(maps.Keys(keys))
}

// Projected says whether projected objects point to a reconcile key.
func (s *Store) Projected(reconcileKey scope.Key) bool { return s.Size(reconcileKey) > 0 }
