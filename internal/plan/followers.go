package plan

import (
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// followTime is how long a reader that follows may take to take in a list, before it is restarted like any other. The kubelet
// may take two minutes to write a file.
const followTime = 150 * time.Second

// keepsUp says whether a pod follows a list, and has taken it in or may still.
func (p *Plan) keepsUp(f *facts.Facts, pod *facts.Pod, scopes []int, list string, w written) bool {
	follower, follows := f.OperatorNamespace.Followers[pod.UID]

	switch {
	case !follows || follower.List != list:
		return false
	case follower.TakenIn == w.takenIn:
		return true
	}

	grace := followTime
	if w.gone {
		grace = f.FollowGrace // the scope stays until then, and nobody wants it any more
	}

	until := believed(f, w.at).Add(grace)
	if !f.Now.Before(until) {
		return false
	}

	p.wake(until, scopes...)

	return true
}

// holdForFollowers keeps permissions in namespaces that are no longer members, as long as a reader that follows works there:
// until all of these have taken in a list without the namespace, or the grace time is over. What was revoked at the source does
// not wait, unless the scope itself goes, which asks for nothing any more. The cluster remembers nothing of it; an Ambit that
// restarts gives the grace time again, or less where it is known when the list was written.
func (p *planner) holdForFollowers(f *facts.Facts) {
	if f.FollowGrace <= 0 || f.OperatorNamespace.Terminating {
		return // in the second case its operators go, too
	}

	lists := p.liveLists()

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if s.Scope.WatchList == "" || len(s.Prune) == 0 {
			continue
		}

		list := liveList{name: s.Scope.WatchList} // one that goes with this plan is still to be written
		if at := slices.IndexFunc(lists, func(l liveList) bool { return l.name == list.name }); at >= 0 {
			list = lists[at]
		}

		if !p.lag(f, &list) {
			continue
		}

		s.Prune = slices.DeleteFunc(s.Prune, func(c Change) bool {
			until := heldFrom(f, &list, c.Namespace).Add(f.FollowGrace)
			if !f.Now.Before(until) {
				return false
			}

			if !s.Scope.Deleting() {
				changes := p.revoked(f, i, c.Namespace, object{c.Key, f.Projected[c.Namespace][c.Key]})
				s.Revoke = append(s.Revoke, changes...)

				if slices.ContainsFunc(changes, func(c Change) bool { return c.Action.TakesAway() }) {
					return true
				}
			}

			s.Held = append(s.Held, c)
			p.wake(until, i)

			return true
		})

		sortChanges(s.Revoke)
	}
}

// RevocationPatience is for how long what is to be revoked waits for another write that fails: in a namespace that left, for that
// of the list, and in all members of an operator namespace, for that of a scope's finalizer. With a last try of that write, it
// makes the ten seconds that a revocation may take.
const RevocationPatience = 8 * time.Second

// boundPruning says when what is pruned goes although the list still names its namespace. Whoever administers the operator
// namespace can have the write of the list fail for as long as they like, by a quota, a webhook or a conflict, and would keep
// permissions in namespaces of others. Since when it is to be taken, this Ambit remembers.
func (p *Plan) boundPruning(f *facts.Facts) {
	p.PruneBy = map[string]time.Time{}

	for i := range p.Scopes {
		for j := range p.Scopes[i].Prune {
			namespace := p.Scopes[i].Prune[j].Namespace

			since, known := f.Leaving[namespace]
			if !known {
				since = f.Now
			}

			p.PruneBy[namespace] = since.Add(RevocationPatience)
		}
	}
}

// lag says whether a reader that follows may still work in namespaces that are no longer in the list.
func (p *Plan) lag(f *facts.Facts, list *liveList) bool {
	return slices.ContainsFunc(f.OperatorNamespace.Pods, func(pod facts.Pod) bool {
		follower, follows := f.OperatorNamespace.Followers[pod.UID]

		return follows && !pod.Ending && follower.List == list.name && (!list.settled || follower.TakenIn != list.written.takenIn)
	})
}

// heldFrom is since when the permissions in a namespace are held, at the latest: the earlier of what the list says, which is
// not there while it is still to be written, and of what this Ambit remembers. So neither a list that changes all the time
// nor anybody who writes into it holds them longer.
func heldFrom(f *facts.Facts, list *liveList, namespace string) time.Time {
	from, known := f.Leaving[namespace]
	if !known {
		from = f.Now
	}

	if at := list.written.at; list.settled && !at.IsZero() && at.Before(from) {
		return at
	}

	return from
}

// Leaving are the namespaces in which a scope of the plan has permissions to take, sorted.
func (p *Plan) Leaving() []string {
	var out []string

	for i := range p.Scopes {
		for _, changes := range [][]Change{p.Scopes[i].Prune, p.Scopes[i].Held} {
			for j := range changes {
				out = append(out, changes[j].Namespace)
			}
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(out)))
}
