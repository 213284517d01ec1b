// Package facts is what the planner knows of the cluster: plain values, taken at one moment, that no longer change.
// Each holds what a decision needs and nothing else.
package facts

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Facts is everything that a plan for one reconcile key is made from.
type Facts struct {
	// Key is what the plan is for.
	Key scope.Key
	// Now is the time at which the facts were taken. The planner has no clock of its own.
	Now time.Time
	// AmbitNamespace is where Ambit itself runs; labels never select it.
	AmbitNamespace string
	// AmbitAccount is the service account of the operator namespace that Ambit runs as, or that stands for it there; empty when
	// there is none.
	AmbitAccount string
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// FollowGrace is for how long permissions stay in a namespace that left, for readers that follow the list; 0 takes them at once.
	// Leaving is since when they are to be taken, by namespace, as far as that is remembered.
	FollowGrace time.Duration
	Leaving     map[string]time.Time
	// FinishGrace is for how long a namespace that left keeps what it has while custom resources there wait for a finalizer of an
	// operator; 0 never. Waiting is what was found to wait; nil where nobody looked, and then nothing is kept. Finishing is since
	// when a namespace is kept, as far as that is remembered; the status has it, too.
	// MayHold says that Ambit itself may put a finalizer on copies, and take it off again although everything in their namespace is
	// being deleted.
	FinishGrace time.Duration
	MayHold     bool
	Waiting     map[WaitingKey]Waiting
	// Unanswered is why a look found nothing out, by where it was.
	Unanswered map[WaitingKey]string
	Finishing  map[WaitingKey]time.Time
	// Namespaces are all namespaces that exist, by name; where they may not be listed, those that were asked for.
	Namespaces map[string]Namespace
	// ClusterRoles are all ClusterRoles by name; nil when Ambit may not list them.
	ClusterRoles map[string]ClusterRole
	// ClusterScoped are the resources, of those that scopes name, that have no namespace, as "resource" or "resource.group".
	ClusterScoped map[string]struct{}
	// ClusterBindings are the ClusterRoleBindings of accounts that scopes are about.
	ClusterBindings ClusterBindings
	// OperatorNamespace is what the namespace of NamespaceScopes holds. Of other families it says no more than whether their
	// namespace is being deleted.
	OperatorNamespace OperatorNamespace
	// Projected are the objects that Ambit made for Key, by member namespace; those that have none are under the empty name.
	Projected map[string]map[ProjectedKey]*Projected
	// Names gives names to new objects; without it, an object is named like its slot.
	Names *projected.Names
	// Foreign are the bindings of others that refer to copies, by namespace, sorted by name.
	Foreign map[string][]ForeignBinding
	// Legacy is what IBM's operator may have projected for the operator namespace, likewise.
	Legacy map[string]map[ProjectedKey]Legacy
	// Installed is what a namespace holds in which something is installed; nil for other families.
	Installed *Installed
	// Authorizations are those that the owners of namespaces gave accounts of the operator namespace, by namespace.
	Authorizations map[string][]Authorization
	// Lost are the copies that somebody else was seen to delete and that were not made again, by namespace.
	Lost map[string]map[Slot]struct{}
	// Granted is when Ambit last wrote a permission for Key; zero when it has not since it began. Granting are the namespaces in
	// which one is being written that no plan waits for any more: it may be there already.
	Granted  time.Time
	Granting map[string]struct{}
}

// ClusterRole is a ClusterRole that exists.
type ClusterRole struct {
	// Made says that the API server recorded Ambit as a writer of it.
	Made bool
	// Aggregated is what Ambit decides of one that it made apart from any scope, and who owns it; nil for every other. One without
	// a name is left out for its size. It is shared and must not be changed.
	Aggregated *rbacv1.ClusterRole
}

// OperatorNamespace is what the scope's own namespace holds.
type OperatorNamespace struct {
	Terminating bool

	// LeftOut says how much of the namespace is more than may be remembered, in words such as "2 Roles"; empty when nothing is. What
	// is left out counts as not being there.
	LeftOut string
	// Roles and Bindings are the sources, by name. Projected ones are not among them.
	Roles    map[string][]rbacv1.PolicyRule
	Bindings map[string]Binding
	// Accounts are the service accounts that exist.
	Accounts map[string]struct{}
	// Workloads are the controllers of pods, sorted by kind and name.
	Workloads []Workload
	// Pods are sorted by name.
	Pods []Pod
	// CSVs are sorted by name. CSVsDecided says that it is known whether they can be read, CSVsListed that they were.
	CSVs                    []CSV
	CSVsDecided, CSVsListed bool
	// Webhooks are those of the CSVs of the operator namespace, sorted by kind and name.
	Webhooks []WebhookConfiguration
	// Followers are the pods that follow a list, by UID.
	Followers map[types.UID]Follower
	// ConfigMaps are those that Ambit wrote a list into or that a scope names, by name.
	ConfigMaps map[string]ConfigMap
}

// Binding is a RoleBinding of the operator namespace.
type Binding struct {
	RoleRef  rbacv1.RoleRef
	Subjects []rbacv1.Subject
	// Slot tells a binding that Ambit made for a ClusterServiceVersion, and the Role of that, from others. Their names change.
	Slot string
}

// ProjectedKey identifies a projected object within a namespace.
type ProjectedKey struct {
	Kind projected.Kind
	Name string
}

// Projected is a live object that Ambit made. Its marks can be edited by whoever may write the object, so they decide nothing
// that matters alone. A record never changes: many facts share it.
type Projected struct {
	*Content

	// RoleName is what the role of a binding is called.
	RoleName string
	// Held says that the object does not go when it is deleted, because of its finalizers; Terminating that it was deleted.
	Held, Terminating bool
	// Version is its resource version.
	Version uint64
}

// Content is what a projected object has in common with those that were made of the same source in other namespaces. There may be
// ten thousand of these, so they share one.
type Content struct {
	ScopeHash, Owner, Source, Slot string
	// Named says that the name is one that Ambit gave, and that nobody knew beforehand. An object that Ambit made before it gave
	// such names is replaced.
	Named bool
	// Owners are the UIDs of its owners, as OwnersOf writes them: garbage collection deletes it with the last of them.
	Owners string
	// RoleGroup and RoleKind are those of the role of a binding.
	RoleGroup, RoleKind string
	// Rules are those of a Role or ClusterRole, as JSON; empty where they are not known. A role without rules has "[]".
	Rules string
	// Subjects are those of a binding, in the same way.
	Subjects string
	Digest   projected.Digest
	// Empty says that nobody holds anything by it: it has no subjects, or no rules. Guarded says that a ClusterRole holds the rule
	// that keeps everybody from binding it, also where its other rules are not known.
	Empty, Guarded bool
}

// RoleRef is that of a binding; the API server lets nobody change it.
func (p *Projected) RoleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: p.RoleGroup, Kind: p.RoleKind, Name: p.RoleName}
}

// Equal says whether two records are the same, also if they do not share their content.
func (p *Projected) Equal(other *Projected) bool {
	same := *other
	if same.Content = p.Content; *p != same {
		return false
	}

	return p.Content == other.Content || p.Content != nil && other.Content != nil && *p.Content == *other.Content
}

// ForeignBinding is a binding of somebody else's that refers to a copy.
type ForeignBinding struct {
	Kind projected.Kind
	Name string
	// Role is the copy.
	Role ProjectedKey
}
