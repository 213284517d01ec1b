package apply

import (
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// withdraw cancels the writes for a reconcile key that are not wanted any more, and waits until they have ended. Those that take
// permissions away are not cancelled: the API server may make them all the same, after a plan was made with what they take. It
// returns these, and what has ended since the last plan.
func (h *breaker) withdraw(key scope.Key, isWanted func(writeKey) bool) (going, ended map[writeKey]struct{}) {
	var unwanted []*underWay

	going = map[writeKey]struct{}{}

	h.mu.Lock()

	for w, a := range h.detached {
		switch {
		case w.key != key || w.isInstall() || isWanted(w):
		case w.action.TakesAway():
			going[w] = struct{}{}
		default:
			unwanted = append(unwanted, a)
		}
	}

	ended = h.ended[key]
	delete(h.ended, key)

	h.mu.Unlock()

	end(unwanted)

	return going, ended
}

// end cancels writes, and waits until they have ended. A plan does not want a restart or an injection that the cluster shows
// already, and its answer is about to come: without it, nobody would be told. So these have a moment for it.
func end(writes []*underWay) {
	moment := make(chan struct{})
	defer time.AfterFunc(memberWait, func() { close(moment) }).Stop()

	for _, a := range writes {
		if a.of.isWrite() {
			select {
			case <-a.ended:
			case <-moment:
			}
		}

		a.cancel()
		<-a.ended
	}
}

// withdraw cancels what is under way and not wanted any more, such as a Role whose source has lost rules since. A member in which
// the plan counts on what is being taken away does not enter a list yet: it is planned again when that has ended.
func (r *run) withdraw() {
	var wanted map[writeKey]struct{}

	going, ended := r.breaker.withdraw(r.plan.Key, func(w writeKey) bool {
		if wanted == nil {
			wanted = r.wanted()
		}

		_, is := wanted[w]

		return is
	})

	r.ended = ended
	r.leaveOut(going)

	if r.leaveOut(ended) {
		r.Late(r.plan.Key) // It may have ended after the facts were taken, or before.
	}
}

// leaveOut keeps the namespaces in which writes take something away from entering a list as members, and says whether any could.
func (r *run) leaveOut(writes map[writeKey]struct{}) bool {
	left := false

	for w := range writes {
		for i := range r.plan.Scopes {
			if _, is := slices.BinarySearch(r.plan.Scopes[i].Members, w.namespace); is && w.action.TakesAway() {
				r.unserved[plan.Member{Scope: i, Namespace: w.namespace}] = struct{}{}
				left = true
			}
		}
	}

	return left
}

func (r *run) wanted() map[writeKey]struct{} {
	out := map[writeKey]struct{}{}

	add := func(id Identity, changes []plan.Change) {
		for i := range changes {
			out[r.memberWrite(id, &changes[i])] = struct{}{}
		}
	}

	for i := range r.plan.Lists {
		out[r.operatorNamespaceWrite(writesList+r.plan.Lists[i].Name)] = struct{}{}
	}

	for i := range r.plan.Restarts {
		out[r.operatorNamespaceWrite(restartsReader+r.plan.Restarts[i].Reader())] = struct{}{}
	}

	for i := range r.plan.Injections {
		out[r.operatorNamespaceWrite(injectsInto+r.plan.Injections[i].Target())] = struct{}{}
	}

	for i := range r.plan.Webhooks {
		out[r.operatorNamespaceWrite(injectsInto+r.plan.Webhooks[i].Target())] = struct{}{}
	}

	for i := range r.plan.Orphans {
		add(r.orphanAs(&r.plan.Orphans[i]), r.plan.Orphans[i:i+1])
	}

	for i := range r.plan.Scopes {
		for _, changes := range r.plan.Scopes[i].Changes() {
			add(r.identities[i], *changes)

			if !r.orphansAs.IsNobody() {
				add(r.orphansAs.InMembers(), *changes)
			}
		}
	}

	return out
}
