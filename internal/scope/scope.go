// Package scope is the one internal form that every kind compiles to: where a set of operators watches, and whose
// permissions go there. It is plain data; it knows neither the kinds it came from nor a client.
package scope

import (
	"reflect"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Scope is the meaning of one resource.
type Scope struct {
	// Owner is the resource that the scope was compiled from.
	Owner Owner
	// Key is what the scope is reconciled with. Its namespace is the operator namespace, whose operators the scope is about.
	Key Key
	// Generation is the generation of the resource that was compiled.
	Generation int64
	// Created is when the resource was made, by the API server's clock.
	Created time.Time
	// Deleted is when the resource's deletion was asked for; zero while it lives. A deleted scope has no members.
	Deleted time.Time
	// Version is the resource version of the resource. What came into being with a later one began after its deletion.
	Version uint64

	// Problem says why the resource cannot be read, so that nobody knows what it means; empty when nothing is wrong.
	Problem string
	Members Members
	// Defines are ClusterRoles that the scope makes, Roles are made in each member, and Binds are the bindings that it makes in
	// each member. A scope that is Explicit has these; another mirrors the permissions of Accounts in its operator namespace
	// instead.
	Defines []ClusterRole
	Roles   []Role
	Binds   []Binding
	// Template makes the ClusterRoles that an instance binds; zero for whatever is no instance.
	Template Owner
	// Listed are namespaces that an operator still has in its list: nothing is revoked there that it may need.
	Listed []string
	// OwnerUID is the UID of a resource whose deletion takes everything with it by garbage collection, as far as that reaches:
	// a namespaced resource takes what is in its own namespace. It is empty when a finalizer sees to that.
	OwnerUID string
	// OwnerVersion is the API version of that resource within its group.
	OwnerVersion string

	Accounts Accounts
	// Operands are the labels a workload's pod template must carry to belong to the scope.
	Operands labels.Selector
	// WatchList names the ConfigMap in the operator namespace that lists the members.
	WatchList string
	// Barred says that whoever writes for the scope may not write WatchList, which another scope shares: no member enters the list
	// on its account. MayNotList says that the API server refuses it, and was not only not heard: nor does one stay in which the
	// scope has nothing.
	Barred, MayNotList bool
	// AllowSubset lets a member into the watch list although some role may not be projected there.
	AllowSubset bool
	// Delegate is the service account of the operator namespace that everything is written as; empty means the manager's own
	// identity.
	Delegate string
	// DelegateByDefault says that Delegate is the manager's choice, because the resource names none.
	DelegateByDefault bool
	// IsTwin says that a scope of another group has the same name beside it, so that only the group says which is meant.
	IsTwin bool
	// Manual says that nothing but what the members' owners granted to Delegate may be used.
	Manual bool
	// InjectCSVs makes the operators of OLM in the operator namespace read WatchList.
	InjectCSVs bool
	// Confined says that whoever may write the resource has the use of Ambit's rights, and no policy asks who that is: what is
	// injected must not be a way to run code.
	Confined bool
	// Labels are those that Operands asks for.
	Labels map[string]string
	// InjectWorkloads makes other operators in the operator namespace read WatchList; nil when nothing is injected into them.
	InjectWorkloads *WorkloadInjection
	// Injected says that the resource's status last said that something may be injected, as evidence of where to look.
	Injected bool
	// Reported are the members that the resource's status last named, as evidence of the list that its readers saw.
	Reported []string
	// Finishing is since when namespaces that are no longer members keep what they have, as the status last said, by name;
	// FinishingSince is that of those for which the status had no room. Both are evidence that outlives the manager.
	Finishing      map[string]time.Time
	FinishingSince time.Time
	// Failed are the namespaces of which the status last said that something failed there, as evidence of where to look.
	Failed []string
}

// ManualDelegate is the Delegate of a scope that is manual and names no account; "ambit authorize" grants to it.
const ManualDelegate = "ambit"

// MarkTwins marks the scopes that differ from another one by their group alone.
func MarkTwins(scopes []*Scope) {
	named := map[string]int{}
	for _, s := range scopes {
		named[s.Owner.String()]++ // This does not say the group.
	}

	for _, s := range scopes {
		s.IsTwin = named[s.Owner.String()] > 1
	}
}

// Deleting says whether the scope is on its way out.
func (s *Scope) Deleting() bool { return !s.Deleted.IsZero() }

// IsUnknown says whether nobody knows what the scope means. One on its way out means that everything goes.
func (s *Scope) IsUnknown() bool { return s.Problem != "" && !s.Deleting() }

// TouchesCSVs says whether the scope injects into ClusterServiceVersions, or did and may have to restore what was there.
func (s *Scope) TouchesCSVs() bool { return s.InjectCSVs || s.Injected }

// Explicit says whether the scope itself says what to make, instead of mirroring its operator namespace.
func (s *Scope) Explicit() bool { return s.Key.Family == Templates || s.Installed() }

// Installed says whether the scope is that of an install.
func (s *Scope) Installed() bool { return s.Key.Family == Installs }

// Mirrors says whether a namespace is the one that the scope mirrors, in which there is nothing to make. One that is explicit
// mirrors none: what it makes, it makes in its own namespace as in any other.
func (s *Scope) Mirrors(namespace string) bool { return namespace == s.Key.Namespace && !s.Explicit() }

// ClusterRole is a ClusterRole to make.
type ClusterRole struct {
	Name  string
	Rules []rbacv1.PolicyRule
	// Aggregates are labels, each with the value "true", of the ClusterRoles whose rules it has instead of its own; sorted.
	Aggregates []string
	// Guarded says that it gets GuardRule besides, so that it may gain rules while it is bound.
	Guarded bool
	// Fixed says that it has just this name, because people are bound to it, and gains rules for them in place. It is not made
	// where somebody else has one of that name.
	Fixed bool
	// Source is the resource that asks for it.
	Source string
}

// GuardRule grants nothing, since there is no such resource, and nobody holds it. The API server lets nobody bind a role whose
// rules they do not hold, so a ClusterRole that has it is bound by Ambit alone, and by whoever may bind everything.
func GuardRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"ambit.dev"}, Resources: []string{"guard"}, Verbs: []string{"hold"}}
}

// WithoutGuard are rules without the one that grants nothing.
func WithoutGuard(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, GuardRule()) })
}

// Role is a Role to make in each member.
type Role struct {
	Name  string
	Rules []rbacv1.PolicyRule
	// Source is the resource that asks for it.
	Source string
}

// Binding binds a ClusterRole, or one of the scope's Roles.
type Binding struct {
	Role     string
	Subjects []rbacv1.Subject
	// Everywhere binds in the whole cluster, and Local binds the Role of that name; otherwise the ClusterRole is bound in each
	// member.
	Everywhere, Local bool
	// Rules are those of the ClusterRole.
	Rules []rbacv1.PolicyRule
}

// Members says which namespaces belong to a scope, besides its operator namespace.
type Members struct {
	// Everywhere binds in the whole cluster, and not in namespaces.
	Everywhere bool
	// Cluster says that the scope also makes what has no namespace.
	Cluster bool
	// Unconfirmed says that Everywhere follows from nothing but silence: a scope that is found in namespaces stays there.
	Unconfirmed bool
	// Kept says that the members are the namespaces in which something of the scope is now; Problem says why.
	Kept bool

	// Named are the namespaces listed by name, sorted and without duplicates.
	Named []string
	// Selector chooses namespaces by label; nil chooses none.
	Selector labels.Selector
	// Problem says why Selector is nil although the resource has one, or why Kept is set; empty when nothing is wrong.
	Problem string
}

// Accounts says whose permissions are projected.
type Accounts struct {
	// OfOperands are the service accounts of the workloads that belong to the scope.
	OfOperands bool
	// All are all service accounts of the operator namespace.
	All bool
	// Named are service accounts of the operator namespace, sorted and without duplicates.
	Named []string
}

// WorkloadInjection is how the watch list gets into workloads.
type WorkloadInjection struct {
	// Variable is the environment variable; empty when there is none.
	Variable string
	// Arguments are added to those of the containers.
	Arguments []string
	// MountPath is where the list is mounted; empty when it is not.
	MountPath string
	// Containers are those to inject into; all when empty.
	Containers []string
	// Replace writes over what somebody else set.
	Replace bool
}

// WatchLists are the names of the ConfigMaps that scopes write lists into, sorted.
func WatchLists(scopes []Scope) []string {
	lists := make([]string, 0, len(scopes))

	for i := range scopes {
		if scopes[i].WatchList != "" {
			lists = append(lists, scopes[i].WatchList)
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(lists)))
}
