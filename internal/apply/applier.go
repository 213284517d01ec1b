// Package apply makes it so. It is the only place that writes, status and finalizers apart: every write takes an identity,
// touches nothing that Ambit did not make, and says what became of it.
package apply

import (
	"context"
	"crypto/sha256"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Recorder is notified of every write that succeeded, so that the next plan knows of it before a watch does.
type Recorder interface {
	Wrote(obj client.Object)
	Deleted(namespace string, key facts.ProjectedKey)
	DeletedConfigMap(namespace, name string)
	// PermissionsChangedAt is when permissions last changed by which an account of one namespace, or Ambit itself with an empty
	// name, might do more or less in another.
	PermissionsChangedAt(namespace, accountsOf string) time.Time
}

// Applier applies plans.
type Applier struct {
	// connect makes the client of an identity.
	connect func(Identity) (client.Client, error)
	store   Recorder
	// parallel is how many writes are under way at once.
	parallel int
	// ReviewOwn says that Ambit itself may do no more than somebody granted to it, so that it has to be asked what that is.
	ReviewOwn bool
	// Authorizations asks which authorizations to accounts of an operator namespace are in a namespace. Without it, those are all
	// that the plan knows of.
	Authorizations func(ctx context.Context, live client.Reader, namespace string, of scope.Owner) ([]facts.Authorization, error)
	// Lacking is called with what an identity lacks of what an install needs. ClusterRoles for people are not needed. Optional.
	Lacking func(user string, missing []authority.Place)
	// Late is called with the reconcile key of a detached write that has ended. Without it, no write is detached.
	Late func(key scope.Key)
	// Now is the clock by which it is remembered when permissions were granted.
	Now func() time.Time

	reviews reviews
	// unanswered are the questions to which the API server gave no answer in time, and which are not asked again for a while.
	unanswered *cache.LRUExpireCache
	breaker    *breaker
	// writtenAt is when the last plan ended that wrote permissions in a namespace, for as long as a review may be from before that.
	writtenAt *cache.LRUExpireCache
	// clients are those of the identities that were used last. connecting is held while one is made: each has a pace of its own.
	clients    *lru.Cache
	connecting sync.Mutex

	mu sync.Mutex
	// granted is when a permission was last written for a reconcile key.
	granted map[scope.Key]time.Time
	// wroteFor are the namespaces in which permissions were written for a reconcile key, until somebody takes them.
	wroteFor map[scope.Key]map[string]struct{}
}

// New returns an applier whose clients are made from config and options. parallel bounds the writes under way at once.
func New(config *rest.Config, options client.Options, store Recorder, parallel int) *Applier {
	return newApplier(impersonating(config, options), store, parallel)
}

// Simulated returns an applier whose clients are those of a cluster in memory: connect returns that of a user, and of Ambit
// itself where the user is empty.
func Simulated(connect func(user string) client.Client, store Recorder) *Applier {
	return newApplier(func(id Identity) (client.Client, error) { return connect(id.User()), nil }, store, 1)
}

func newApplier(connect func(Identity) (client.Client, error), store Recorder, parallel int) *Applier {
	return &Applier{
		connect: connect, store: store, parallel: max(1, parallel), Now: time.Now,
		granted: map[scope.Key]time.Time{}, breaker: newBreaker(), clients: lru.New(maxClients),
		writtenAt: cache.NewLRUExpireCache(maxReviews), wroteFor: map[scope.Key]map[string]struct{}{},
		reviews:    reviews{known: map[reviewed]*review{}, rules: map[[sha256.Size]byte][]rbacv1.PolicyRule{}},
		unanswered: cache.NewLRUExpireCache(maxReviews),
	}
}

// ApplyWith makes a plan true, as far as the API server lets it. identities are those of the plan's scopes, in their order, and
// orphans is the one for what is left of scopes that are gone, and for what installs no longer want. Where it is nobody, the
// former stays, unless the plan still has a scope to take it away.
//
// The order is the promise: permissions are revoked first, and no subject that a binding loses, or that loses its binding,
// holds new rules of the role; a member's permissions are there before the watch list names it; and the list forgets a member
// before its permissions go. An injection that makes an operator read a list is written after the list, and taken back before
// the list goes. A failure stops only what depends on it.
func (a *Applier) ApplyWith(ctx context.Context, p *plan.Plan, identities []Identity, orphans Identity) *Outcome {
	out := &Outcome{Scopes: make([]ScopeOutcome, len(p.Scopes))}
	run := &run{
		Applier: a, plan: p, inOperatorNamespace: identities, orphansAs: orphans, out: out,
		failedRoles: map[failedRole]error{}, unserved: plan.Members{},
		refusedIn: plan.Members{}, bound: plan.Members{}, wroteIn: map[string]struct{}{},
		refused: map[*plan.Change]error{}, doubts: map[*plan.Change]doubt{}, answers: map[question][]rbacv1.PolicyRule{},
		sums: map[sum][]rbacv1.PolicyRule{}, seed: maphash.MakeSeed(),
	}

	for i := range identities {
		out.Scopes[i].Nobody = identities[i].Why()
		run.identities = append(run.identities, identities[i].InMembers())
	}

	run.withdraw()
	out.Late = a.breaker.takeMade(p.Key)
	run.gather(ctx)
	run.changes(ctx, func(s *plan.ScopePlan) []plan.Change { return s.Hold }, granting()...)
	run.changes(ctx, revoked, projected.ClusterRoleBinding, projected.RoleBinding, projected.Role)
	run.changing = run.changingRoles()
	run.part(ctx)
	run.reduce(ctx)
	run.changes(ctx, func(s *plan.ScopePlan) []plan.Change { return s.Grant }, granting()...)
	run.noteGrants()
	run.injections(ctx, true)
	run.lists(ctx)
	run.injections(ctx, false)
	run.webhooks(ctx)
	run.orphans(ctx, run.stays)
	run.changesIf(ctx, run.prunable, run.stays, revoking()...)
	// A ClusterRole may be bound in what was pruned just now, by another scope.
	run.changes(ctx, revoked, projected.ClusterRole)
	run.changes(ctx, func(s *plan.ScopePlan) []plan.Change { return s.Retire }, revoking()...)
	run.changes(ctx, func(s *plan.ScopePlan) []plan.Change { return s.Legacy }, revoking()...)
	run.noteWritten(p.Key, run.wroteIn)
	run.restarts(ctx)

	return out
}

// granting is the order in which objects come, revoking that in which they go: what grants nothing by itself is there
// before, and stays until after, what refers to it.
func granting() []projected.Kind {
	return slices.Concat(projected.RoleKinds(), projected.BindingKinds())
}
func revoking() []projected.Kind {
	return slices.Concat(projected.BindingKinds(), projected.RoleKinds())
}

func revoked(s *plan.ScopePlan) []plan.Change { return s.Revoke }

// run is one application of one plan.
type run struct {
	*Applier

	plan *plan.Plan
	// identities write in members, inOperatorNamespace in the namespace of the plan. orphansAs is who takes away what is left.
	identities, inOperatorNamespace []Identity
	orphansAs                       Identity

	mu  sync.Mutex
	out *Outcome
	// failedRoles and unserved index the failures: by role, and by the members that miss something because of them.
	failedRoles map[failedRole]error
	unserved    plan.Members
	// refusedIn are the members in which something was refused, bound those in which a binding was written.
	refusedIn, bound plan.Members
	// changing are the roles that the plan writes.
	changing map[place]struct{}
	// wroteIn are the namespaces in which permissions were written.
	wroteIn map[string]struct{}
	// ended are the detached writes that have ended since the plan before this one, and of which this one may not know.
	ended map[writeKey]struct{}
	// refused are the changes that are known to be refused, doubts those of which it is not known; answers is what was worked out
	// about them.
	refused map[*plan.Change]error
	doubts  map[*plan.Change]doubt
	answers map[question][]rbacv1.PolicyRule
	// sums is all that is missing, for members that miss the same.
	sums map[sum][]rbacv1.PolicyRule
	// comparing is held while rules are compared: that takes memory, and many members ask at once.
	comparing sync.Mutex
	seed      maphash.Seed
}

// everywhere stands for the member of a ClusterRole, which any scope of the plan may bind.
var everywhere = plan.Member{Scope: -1}

type failedRole struct {
	plan.Member

	name string
}

// job is a change and the scope that asks for it.
type job struct {
	scope  int
	change *plan.Change
}

// changes makes the selected changes of all scopes, one kind after the other.
func (r *run) changes(ctx context.Context, selected func(*plan.ScopePlan) []plan.Change, kinds ...projected.Kind) {
	r.changesIf(ctx, selected, func(*plan.Change) bool { return true }, kinds...)
}

// changesIf makes those of the selected changes for which is says so.
func (r *run) changesIf(
	ctx context.Context, selected func(*plan.ScopePlan) []plan.Change, is func(*plan.Change) bool, kinds ...projected.Kind,
) {
	for _, kind := range kinds {
		var jobs []job

		for i := range r.plan.Scopes {
			changes := selected(&r.plan.Scopes[i])
			for j := range changes {
				if c := &changes[j]; c.Key.Kind == kind && is(c) && r.tries(i, c) {
					jobs = append(jobs, job{i, c})
				}
			}
		}

		r.each(ctx, len(jobs), func(i int) {
			j := jobs[i]
			result, err := r.attempt(ctx, j)
			r.note(j, result, err)
		})
	}
}

// attempt makes a change, unless it is known to be refused.
func (r *run) attempt(ctx context.Context, j job) (Result, error) {
	if err := r.refused[j.change]; err != nil {
		return r.withoutRights(ctx, j, err)
	}

	d, inDoubt := r.doubts[j.change]
	if inDoubt && d.review.refuses(what(j.change)) {
		return r.withoutRights(ctx, j, d.missing)
	}

	if err := r.breaker.of(j.change); err != nil {
		return Failed, err
	}

	id := r.identityFor(j.scope, j.change)
	result, err := r.changeBounded(ctx, id, j.change)

	if inDoubt && lacksRights(err) {
		return r.withoutRights(ctx, j, d.missing)
	}

	if lacksRights(err) {
		err = r.explain(ctx, id, j, err)
	}

	if err != nil {
		return r.withoutRights(ctx, j, err)
	}

	return result, nil
}

// identityFor is who makes a change of a scope.
func (r *run) identityFor(index int, c *plan.Change) Identity {
	if r.takesAway(index, c) {
		return r.orphansAs.InMembers()
	}

	return r.identities[index]
}

// takesAway says whether the identity that removes orphans also removes what a scope made: for an install. The installing
// account need not be allowed to delete, and neither that account nor its deletion must keep what is no longer wanted.
func (r *run) takesAway(index int, c *plan.Change) bool {
	return c.Action.TakesAway() && r.plan.Scopes[index].Scope.Installed() && !r.orphansAs.IsNobody()
}

// tries says whether a change is tried, and notes one that is not: a binding whose role could not be written. It would be
// refused, or worse, refer to a Role of somebody else's making.
func (r *run) tries(scope int, c *plan.Change) bool {
	if c.Copy == nil || !c.Key.Kind.IsBinding() {
		return true
	}

	role := failedRole{plan.Member{Scope: scope, Namespace: c.Namespace}, c.RoleRef.Name}
	if c.RoleRef.Kind == string(projected.ClusterRole) {
		role.Member = everywhere
	}

	why, failed := r.failedRoles[role]
	if own := r.refused[c]; failed && own != nil {
		why = own
	}

	if failed {
		r.out.Scopes[scope].Untried = append(r.out.Scopes[scope].Untried, Failure{Change: c, Class: Classify(why), Err: why})
	}

	return !failed
}

// prunable holds back what may not be pruned yet: while the watch list may still name a namespace because its write failed and
// can be tried again, nothing is pruned there until its time is over. A list that cannot be written at all keeps nobody's
// permissions alive, and no list does for long.
func (r *run) prunable(s *plan.ScopePlan) []plan.Change {
	if l := r.out.List(r.plan, s.Scope.WatchList); l == nil || l.Err == nil || l.Is(Refused) {
		return s.Prune
	}

	now := r.Now()

	return slices.DeleteFunc(slices.Clone(s.Prune), func(c plan.Change) bool {
		by := r.plan.PruneBy[c.Namespace]
		if !now.Before(by) {
			return false
		}

		r.out.PruneAt = plan.Sooner(r.out.PruneAt, by)

		return true
	})
}

func (r *run) note(j job, result Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	class := r.out.Scopes[j.scope].note(j.change, result, err)
	m := plan.Member{Scope: j.scope, Namespace: j.change.Namespace}

	if err == nil && result.isWrite() {
		r.wroteIn[m.Namespace] = struct{}{}
	}

	switch {
	case j.change.Action.TakesAway():
		return
	case err == nil:
		if j.change.Key.Kind.IsBinding() && result != Deleted {
			r.bound[m] = struct{}{}
		}

		return
	case class == Refused:
		r.refusedIn[m] = struct{}{}
	}

	switch j.change.Key.Kind {
	case projected.Role:
		r.failedRoles[failedRole{m, j.change.Key.Name}] = err
	case projected.ClusterRole:
		r.failedRoles[failedRole{everywhere, j.change.Key.Name}] = err
	case projected.RoleBinding, projected.ClusterRoleBinding:
	}

	// A binding without its role would give nothing. What is refused is not missed where the scope allows a subset.
	if class == Dangling {
		return
	}

	if class != Refused || !r.plan.Scopes[j.scope].Scope.AllowSubset {
		r.unserved[m] = struct{}{}
	}
}

// each calls do for 0 to n-1, with a bounded number under way at once. Every call is made, whatever the others did.
func (r *run) each(ctx context.Context, n int, do func(i int)) {
	workqueue.ParallelizeUntil(ctx, r.parallel, n, do)
}
