// Package plan decides what should exist. It is pure: it has neither client nor context nor clock, takes scopes and
// facts, and returns what to write. The manager applies a plan; the command line shows it.
package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Plan is everything to be done for the scopes of one reconcile key. It is data: it can be printed, compared and written
// down, and whoever applies it needs nothing else. What depends on the result of a write is decided by the functions of
// resolve.go.
type Plan struct {
	// Key is what it is for.
	Key scope.Key
	// Scopes are in the order of their owners.
	Scopes []ScopePlan
	// Lists are the watch lists, sorted by name.
	Lists []ListPlan
	// Injections are writes into operators, sorted by what they are written to; Webhooks are limits of webhooks.
	Injections []Injection
	Webhooks   []WebhookPlan
	// CSVsDecided says that it is known whether there are ClusterServiceVersions.
	CSVsDecided bool
	// Restarts are those that are due now, sorted by workload.
	Restarts []Restart
	// Orphans are projected objects whose scope is gone without having cleaned up.
	Orphans []Change
	// LeftOut says how much of the operator namespace is not known, because it is more than may be remembered; empty for nothing.
	LeftOut string
	// PruneBy is when what is pruned in a namespace goes at the latest, whatever became of the list that names it.
	PruneBy map[string]time.Time
	// Again is when planning anew can bring something although nothing changed in the cluster; zero when never.
	Again time.Time
}

// ScopePlan is what one scope asks for.
type ScopePlan struct {
	Scope *scope.Scope
	// ScopeHash and Owner are the marks of what the scope makes.
	ScopeHash, Owner string
	// Grantee is the account to which the owners of members grant; empty where nothing depends on that.
	Grantee string
	// Members are the namespaces to project into, sorted. The operator namespace is not among them. A scope that binds in the
	// whole cluster, or makes ClusterRoles, has the member "", which is the cluster itself.
	Members []string
	// Everywhere says that the scope binds in the whole cluster.
	Everywhere bool
	// Beyond are the members that are left out, because the scopes of the namespace ask for more than MaxObjects.
	Beyond []string
	// Absent are the members that cannot be served, sorted by name.
	Absent []Absent
	// Selection is the result of the scope's selector.
	Selection Selection
	// Accounts are the service accounts whose permissions are projected; MissingAccounts do not exist. Both sorted.
	Accounts, MissingAccounts []string
	// DanglingBindings name a role that does not exist, as "<binding>: <kind> <role>", sorted.
	DanglingBindings []string
	// Foreign are the names of ClusterRoles that the scope should make or bind and that are somebody else's, sorted.
	Foreign []string
	// Ineffective are rules, in words, that mean nothing in the namespaces in which they are bound, sorted.
	Ineffective []string
	// ClusterWide are the bindings by which accounts of the scope hold something in all namespaces, the most important first;
	// ClusterWideMore counts those that nobody looked at.
	ClusterWide     []ClusterWide
	ClusterWideMore int
	// Leases are the bindings, sorted, that are projected with the right to lead, which an operator needs beside itself alone.
	Leases []string
	// Injectables are the workloads that the scope injects into, sorted; CSVs the result of the injection into those.
	// InjectionRefused says why it injects into no workload at all. OlderCount is how many an older scope injects into, of which
	// only the first are among the Injectables.
	Injectables      []Injectable
	OlderCount       int
	InjectionRefused string
	CSVs             CSVs
	// Copies is what every member should hold, roles before bindings, each in the order of their sources.
	Copies []Copy

	// Revoke removes permissions in members, and comes first. Grant adds and changes them. Prune empties namespaces that are no
	// longer members, and comes after the watch list has forgotten them. Retire removes what was replaced. Hold comes before all of
	// them: it keeps copies in a namespace that is being deleted.
	Revoke, Grant, Prune, Retire, Hold []Change
	// Finishing are the namespaces, sorted, that left and keep what they have for a while. Leaves are those, sorted, that left and
	// are still in the list: unless their time is over, something may wait in them, and whoever looks for it does so before the plan
	// is made anew with what was found.
	Finishing, Leaves []Finishing
	// Replaced removes what others come in place of, which Retire does once these are known to the API server's authorizer.
	Replaced []Change
	// Held is what will be pruned once the readers that follow the watch list have let go of it.
	Held []Change

	// ForeignBindings are bindings of somebody else's that refer to copies of the scope, as "<namespace>/<binding>", sorted.
	ForeignBindings []string

	// Legacy removes what IBM's operator projected, once it is replaced. ForeignLegacy bear that operator's mark and are not its
	// work, sorted.
	Legacy        []Change
	ForeignLegacy []string

	// Withdrawn are the members in which something that was there is known to be gone, Bare those in which nobody holds anything,
	// both sorted.
	Withdrawn, Bare []string

	// Waits says that the scope is to be planned again at a time although nothing changes.
	Waits bool

	// ClusterRoles are the names of the ClusterRoles that scopes of the plan make, by slot.
	ClusterRoles map[string]string
}

// Copy is a projected object and the role it is about.
type Copy struct {
	projected.Object

	// SourceRole is the name of the Role or ClusterRole that users know it by.
	SourceRole string

	// Sum is the digest of the object, by which one that is there is told from one that differs.
	Sum projected.Digest
	// OfCopy says that RoleRef names the slot of another copy; Role is the index of that, where it is a Role.
	OfCopy bool
	Role   int
	// Fixed says that the object is called as its slot, so that another one may be in its place, and Guarded that it holds the
	// guard. Each of them may gain rules while it is bound.
	Fixed, Guarded bool
}

// growsInPlace says whether the object, as it should be, may gain rules where it is.
func (c *Copy) growsInPlace() bool { return c.Fixed || c.Guarded }

// mayGrow says whether a live object may gain rules where it is: whoever has bound it will hold them. It is guarded if it holds
// the guard.
func (c *Copy) mayGrow(guarded bool) bool { return c.Fixed || c.Guarded && guarded }

// clusterRole is the name of a ClusterRole, and all objects in its slot, of which some may have earlier names.
type clusterRole struct {
	name   string
	former []object
}

// slot tells a copy from all others of a scope.
type slot struct {
	kind projected.Kind
	name string
}

// Absent is a member that cannot be served: it is named and does not exist or is not accessible to Ambit, or it is being deleted.
type Absent struct {
	Namespace   string
	Terminating bool
	// Closed says why nothing can be done there; empty when that is not the reason.
	Closed string
}

// Selection is the result of a selector.
type Selection struct {
	// Asked says that there is a selector. Problem says why it could not be used. Matched counts the namespaces that it
	// selects.
	Asked   bool
	Problem string
	Matched int
}

// New plans for one reconcile key. The order of the scopes does not matter.
func New(scopes []scope.Scope, f *facts.Facts) Plan {
	p := planner{Plan: Plan{
		Key: f.Key, LeftOut: f.OperatorNamespace.LeftOut, Scopes: make([]ScopePlan, len(scopes)),
		CSVsDecided: f.OperatorNamespace.CSVsDecided || f.OperatorNamespace.Terminating,
	}}

	sorted := collect.Pointers(scopes)
	slices.SortFunc(sorted, func(a, b *scope.Scope) int { return a.Owner.Compare(b.Owner) })

	room := MaxProjected

	for i := range sorted {
		sp, size := newScopePlan(sorted[i], f, room)
		p.Scopes[i], room = sp, room-size
	}

	p.bound()
	p.findFinishing(f)
	p.diff(f)
	p.findForeignBindings(f)
	p.planLegacy(f)
	p.planLists(f)
	p.holdForFollowers(f)
	p.boundPruning(f)

	all := newReaders(f, p.liveLists())
	p.planInjections(f, all)
	slices.SortFunc(p.Injections, func(a, b Injection) int {
		return cmp.Or(cmp.Compare(a.Workload.Kind, b.Workload.Kind), cmp.Compare(a.Workload.Name, b.Workload.Name))
	})
	p.planRestarts(f, all)

	return p.Plan
}

// planner is a plan that is being made, and what that takes.
type planner struct {
	Plan

	names *projected.Names
	// byHash and byOwner find a scope by the marks of what it made.
	byHash, byOwner map[string]int
	// clusterRoles are those of the scopes, by slot.
	clusterRoles map[string]clusterRole
	// covers remembers what sets of rules have in common.
	covers map[coverKey]cover
	// allowances are what authorizations allow, by their rules.
	allowances map[string]*allowance
	// slots are those of the scopes, in their order.
	slots []slots
}

// slots are what tells the copies of a scope apart.
type slots struct {
	// index is that of the copy in each; filled is what there is for each copy in the namespace that is being compared.
	index  map[slot]int
	filled []filled
}

// Settled says whether the scope's projected objects are as they should be.
func (s *ScopePlan) Settled() bool {
	return len(s.Held) == 0 && !slices.ContainsFunc(s.Changes(), func(c *[]Change) bool { return len(*c) > 0 })
}

// Changes are all that the plan writes for the scope in members, by what they are for. What is Held is for a later plan.
func (s *ScopePlan) Changes() []*[]Change {
	return []*[]Change{&s.Hold, &s.Revoke, &s.Grant, &s.Prune, &s.Retire, &s.Legacy}
}

// isPending says whether a member still misses something.
func (s *ScopePlan) isPending(namespace string) bool {
	_, found := slices.BinarySearchFunc(s.Grant, namespace, func(c Change, ns string) int {
		return cmp.Compare(c.Namespace, ns)
	})

	return found
}

// Pending are the members that still miss something.
func (p *Plan) Pending() Members {
	pending := Members{}

	for i := range p.Scopes {
		for j := range p.Scopes[i].Grant {
			pending[Member{i, p.Scopes[i].Grant[j].Namespace}] = struct{}{}
		}
	}

	return pending
}

// newScopePlan plans for one scope, and returns how much it takes of the room for what is projected.
func newScopePlan(s *scope.Scope, f *facts.Facts, room int) (sp ScopePlan, size int) {
	sp = ScopePlan{Scope: s, ScopeHash: s.Owner.Hash(), Owner: s.Owner.String()}
	sp.Grantee = sp.grantedTo(f)

	if s.Deleting() {
		return sp, 0
	}

	sp.resolveMembers(f)

	if s.Explicit() {
		sp.Copies = sp.explicit(f)
	} else {
		size = sp.project(f, room)
	}

	// A scope that binds in the whole cluster says so itself, and what Ambit's own account holds is what its profile says.
	if !sp.Everywhere {
		sp.ClusterWide, sp.ClusterWideMore = ClusterWideOf(sp.holders(f), s.Owner, f), f.ClusterBindings.More
	}

	return sp, size
}
