package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

const (
	// DefaultFinishGrace is how long operators may take to finish in a namespace that left, unless a flag says otherwise.
	DefaultFinishGrace = time.Minute
	// DefaultFollowGrace is how long permissions stay in a namespace that left, for readers that follow the list.
	DefaultFollowGrace = 10 * time.Second
	// unseenGrace is how long they get where nobody may see whether anything waits: most finish within seconds, and a namespace that
	// leaves should not keep permissions much longer for nothing.
	unseenGrace = 5 * time.Second
	// firstLook and lastLook bound the time between two looks at what waits. Between them it is one lookPart-th of the time for
	// which something has waited, so that looks become rarer.
	firstLook = time.Second
	lastLook  = 5 * time.Second
	lookPart  = 8
)

// Finishing is a namespace that is no longer a member, or is being deleted, and keeps what was projected there, and its place in
// the list, until the scope's operators have taken their finalizers off the custom resources that are being deleted there.
type Finishing struct {
	Namespace string
	// Terminating says that the namespace is being deleted, and everything in it with it.
	Terminating bool
	// Since is when that began, Until when it is over whatever waits.
	Since, Until time.Time
	// Began says that the plan before, which this Ambit remembers, did not have it.
	Began bool
	// Over says that this is past.
	Over bool
	// Waiting is what is there; Looked says whether that is known.
	Waiting facts.Waiting
	Looked  bool
}

// LookAgain is how long it is worth waiting between two looks at the namespace.
func (f *Finishing) LookAgain(now time.Time) time.Duration {
	return min(max(now.Sub(f.Since)/lookPart, firstLook), lastLook)
}

// WaitingKey tells what waits in a namespace for this scope.
func (p *ScopePlan) WaitingKey(namespace string) facts.WaitingKey {
	return facts.WaitingKey{Scope: p.ScopeHash, Namespace: namespace}
}

// Grant is what accounts hold by a binding that is projected: these rules, or those of a ClusterRole.
type Grant struct {
	Accounts    []string
	Rules       []rbacv1.PolicyRule
	ClusterRole string
}

// Grants are what the scope's accounts hold in each member.
func (p *ScopePlan) Grants() []Grant {
	var out []Grant

	for i := range p.Copies {
		c := &p.Copies[i]
		if c.Kind != projected.RoleBinding {
			continue
		}

		g := Grant{}
		for j := range c.Subjects {
			g.Accounts = append(g.Accounts, c.Subjects[j].Name)
		}

		if c.OfCopy {
			g.Rules = p.Copies[c.Role].Rules
		} else {
			g.ClusterRole = c.RoleRef.Name
		}

		out = append(out, g)
	}

	return out
}

// findFinishing finds the namespaces that may finish, and decides which of them do: those that left the members, are still in the
// list, and in which the scope's accounts hold something. Once the list has forgotten one, it never finishes again. When a scope
// is deleted, an authorization is withdrawn, or Ambit may not read a namespace, everything goes at once.
func (p *Plan) findFinishing(f *facts.Facts) {
	if f.FinishGrace <= 0 || f.OperatorNamespace.Terminating {
		return
	}

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if s.Scope.Deleting() || s.Scope.Explicit() || s.Scope.WatchList == "" {
			continue
		}

		remembers := s.remembers(f)

		for name := range strings.SplitSeq(p.presentList(s.Scope.WatchList, f), ",") {
			if l, leaves := s.leave(f, name); leaves {
				_, known := f.Finishing[s.WaitingKey(name)]
				l.Began = remembers && !known
				s.Leaves = append(s.Leaves, l)
			}
		}

		slices.SortFunc(s.Leaves, func(a, b Finishing) int { return cmp.Compare(a.Namespace, b.Namespace) })
		s.Leaves = slices.CompactFunc(s.Leaves, func(a, b Finishing) bool { return a.Namespace == b.Namespace })

		if f.Waiting != nil { // Where nobody looked, nothing is kept.
			p.decideFinishing(s, f)
		}
	}
}

func (p *Plan) decideFinishing(s *ScopePlan, f *facts.Facts) {
	for _, l := range s.Leaves {
		if l.Waiting, l.Looked = f.Waiting[s.WaitingKey(l.Namespace)]; !l.Looked {
			l.Waiting.Unanswered = f.Unanswered[s.WaitingKey(l.Namespace)]
		}

		if l.Waiting.Count == 0 && l.Waiting.Unseen != "" {
			l.until(f, unseenGrace)
		}

		if l.Over || l.Looked && !l.Waiting.Any() {
			continue
		}

		s.Finishing = append(s.Finishing, l)

		p.wake(Sooner(f.Now.Add(l.LookAgain(f.Now)), l.Until))
		s.Waits = true
	}
}

// presentList is a watch list as Ambit last decided it.
func (p *Plan) presentList(name string, f *facts.Facts) string {
	l := newListPlan(name, f)

	for i := range p.Scopes {
		if s := p.Scopes[i].Scope; s.WatchList == name && !s.Deleting() {
			l.Scopes = append(l.Scopes, i)
		}
	}

	l.Reported = p.reportedList(l)

	return l.present()
}

// leave says whether a namespace of the list left the scope and may finish, and since when.
func (p *ScopePlan) leave(f *facts.Facts, name string) (Finishing, bool) {
	ns, exists := f.Namespaces[name]
	if !exists || ns.Terminating && !p.mayHold(f) || ns.Closed != "" || p.Scope.Mirrors(name) || p.isMember(name) ||
		!p.grants(f, name) || p.lostAuthorization(f, name) {
		return Finishing{}, false
	}

	l := Finishing{Namespace: name, Terminating: ns.Terminating, Since: p.leftAt(f, name)}
	l.until(f, f.FinishGrace)

	return l, true
}

// until bounds the time by a grace, and by that of the manager.
func (f *Finishing) until(known *facts.Facts, grace time.Duration) {
	f.Until = f.Since.Add(min(grace, known.FinishGrace))
	f.Over = !known.Now.Before(f.Until)
}

// mayHold says whether copies can outlast the content of a namespace that is being deleted. That takes a finalizer, which only
// somebody may put there who can take it off when all RBAC of the namespace is gone: Ambit itself, with rights in the whole
// cluster.
func (p *ScopePlan) mayHold(f *facts.Facts) bool { return f.MayHold && p.Scope.Delegate == "" }

// leftAt is since when a namespace finishes, at the latest: the earliest of what the status says and of what this Ambit
// remembers. So neither an Ambit that restarts nor anybody who writes into one of them gives more time than there is.
func (p *ScopePlan) leftAt(f *facts.Facts, name string) time.Time {
	since := f.Now

	announced, known := p.Scope.Finishing[name]
	if !known {
		announced = p.Scope.FinishingSince
	}

	for _, at := range []time.Time{announced, f.Finishing[p.WaitingKey(name)], f.Namespaces[name].Deleted} {
		if !at.IsZero() && at.Before(since) {
			since = at
		}
	}

	return since
}

// remembers says whether this Ambit remembers namespaces that left the scope: one that has just started does not.
func (p *ScopePlan) remembers(f *facts.Facts) bool {
	for key := range f.Finishing {
		if key.Scope == p.ScopeHash {
			return true
		}
	}

	return false
}

// grants says whether somebody holds something by what the scope has in a namespace.
func (p *ScopePlan) grants(f *facts.Facts, namespace string) bool {
	for key, live := range f.Projected[namespace] {
		if key.Kind == projected.RoleBinding && !live.Empty && p.isMarked(live) {
			return true
		}
	}

	return false
}

// IsFinishing says whether a namespace that left keeps what it has.
func (p *ScopePlan) IsFinishing(namespace string) bool {
	_, found := slices.BinarySearchFunc(p.Finishing, namespace, func(f Finishing, name string) int {
		return cmp.Compare(f.Namespace, name)
	})

	return found
}

// LeftSince is since when namespaces left that are still in a list, for whoever remembers it until the next plan.
func (p *Plan) LeftSince() map[facts.WaitingKey]time.Time {
	out := map[facts.WaitingKey]time.Time{}

	for i := range p.Scopes {
		s := &p.Scopes[i]
		for j := range s.Leaves {
			out[s.WaitingKey(s.Leaves[j].Namespace)] = s.Leaves[j].Since
		}
	}

	return out
}

// finish keeps an object of a namespace that finishes, as far as the scope still asks for it.
func (p *planner) finish(f *facts.Facts, at int, namespace string, live object) {
	s := &p.Scopes[at]

	if changes := p.revoked(f, at, namespace, live); len(changes) > 0 {
		s.Revoke = append(s.Revoke, changes...)

		return
	}

	s.hold(f, namespace, &live)
}

// revoked are the changes that an object needs at once in a namespace that left and keeps permissions for a while: what was
// revoked at the source, and what somebody else made of a copy, goes, and nothing is added. In one that is being deleted, and
// stays as long as somebody likes, a binding loses only who is to hold nothing: nobody could make it again.
func (p *planner) revoked(f *facts.Facts, at int, namespace string, live object) []Change {
	s := &p.Scopes[at]

	index, wanted := p.slots[at].index[slot{live.key.Kind, live.Slot}]
	if !wanted || !s.refersRight(f, namespace, &s.Copies[index], &live) {
		return removal(namespace, live.key, live.Projected)
	}

	c := &s.Copies[index]

	switch {
	case live.Digest == c.Sum || live.Empty:
		return nil
	case live.key.Kind.IsBinding() && s.IsFinishing(namespace):
		return removal(namespace, live.key, live.Projected)
	}

	m := member{planner: p, s: s, namespace: namespace}
	change := m.update(c, &live)

	if live.key.Kind.IsBinding() {
		if !change.Loses {
			return nil
		}

		return []Change{change}
	}

	// A Role that would have to grow stays as it is.
	with := p.coverOf(live.Rules, c)
	if !with.exceeds {
		return nil
	}

	change.Rules = with.common

	return []Change{change}
}

// hold sees to it that a copy outlasts the content of a namespace that is being deleted. Kubernetes deletes copies with
// everything else there, five seconds after the namespace (namespaceDeletionGracePeriod in
// k8s.io/kubernetes/pkg/controller/namespace/namespace_controller.go), and nobody can make them again.
func (p *ScopePlan) hold(f *facts.Facts, namespace string, live *object) {
	if f.Namespaces[namespace].Terminating && !live.Held && !live.Terminating && !live.Empty {
		p.Hold = append(p.Hold, Change{
			Action: Hold, Namespace: namespace, Key: live.key, Version: live.Version, Named: live.Named,
		})
	}
}

// refersRight says whether a binding refers to the role that it should. A role that somebody else made beside it does not count.
func (p *ScopePlan) refersRight(f *facts.Facts, namespace string, c *Copy, live *object) bool {
	switch {
	case !c.Kind.IsBinding():
		return true
	case !c.OfCopy:
		return live.RoleRef() == c.RoleRef
	}

	role, exists := f.Projected[namespace][facts.ProjectedKey{Kind: projected.Role, Name: live.RoleName}]

	return exists && live.RoleKind == string(projected.Role) && p.isMarked(role) && role.Slot == p.Copies[c.Role].Slot
}
