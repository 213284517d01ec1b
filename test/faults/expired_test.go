package faults_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestWatchesThatExpireInAStorm: while everything changes, watches tell nothing, and end with 410 Gone; those that begin anew end
// at once, or are refused in the same way; and the API server restarts in between. What was revoked meanwhile is revoked, and
// nothing else is kept or lost.
func TestWatchesThatExpireInAStorm(t *testing.T) {
	kill(t)
	t.Cleanup(func() { start(t) })

	r := testcluster.Draws(t, 0)
	p, m := newProxy(t)
	w := newWorld(t, "storm", 3, 6)
	w.eventually("the manager works", func() bool { return m.Works("namespacescope") == nil })
	w.scope(w.members...)
	w.settled()

	ended := 0

	for round := range 10 {
		p.set(true, []refusal{answered, refused, endedAtOnce}[round%3])

		for range 1 + r.IntN(3) {
			w.mutate(r)
		}

		ended += p.expire()

		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		w.mutate(r)

		if round%4 == 3 {
			w.restartAPIServer([]string{"KILL", "TERM"}[round/4%2])
		}

		p.set(false, answered)
	}

	if ended < 10 {
		t.Fatalf("%d watches were ended", ended)
	}

	p.set(true, answered)
	w.remove(&rbacv1.RoleBinding{ObjectMeta: w.meta("operator-2-a")})
	p.expire()
	p.set(false, answered)

	w.eventually("what is revoked last is revoked", func() bool { return w.bound(t, "operator-2-a") == 0 })
	w.settled()
}

// bound counts the copies of a RoleBinding of the operator namespace.
func (w *world) bound(t *testing.T, name string) int {
	t.Helper()

	list := &rbacv1.RoleBindingList{}
	if err := suite.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}

	n := 0

	for i := range list.Items {
		if list.Items[i].Annotations["ambit.dev/source"] == "RoleBinding/"+w.ops+"/"+name {
			n++
		}
	}

	return n
}

// TestWatchesThatAlwaysExpireAreNotBegunAllTheTime: an API server that remembers nothing, or whatever stands before it, answers
// every watch with 410 Gone. Nobody asks it all the time, and once it remembers again everything is as it should be.
func TestWatchesThatAlwaysExpireAreNotBegunAllTheTime(t *testing.T) {
	kill(t)
	t.Cleanup(func() { start(t) })

	p, m := newProxy(t)
	w := newWorld(t, "expired", 2, 3)
	w.eventually("the manager works", func() bool { return m.Works("namespacescope") == nil })
	w.scope(w.members...)
	w.settled()

	for i, how := range []refusal{refused, endedAtOnce} {
		p.set(false, how)
		p.count()

		began := time.Now()

		if p.expire() < 10 {
			t.Fatal("hardly a watch was open")
		}

		w.eventually("each watch is begun again after a pause", func() bool { return p.paused(500 * time.Millisecond) })
		w.boundedSince(t, began, p.count())
		w.remove(&rbacv1.RoleBinding{ObjectMeta: w.meta([]string{"operator-0-a", "operator-0-b"}[i])})
		p.set(false, answered)
		w.settled()
	}
}

// boundedSince fails if lists and watches of one kind began all the time since a moment, or if none did.
func (*world) boundedSince(t *testing.T, began time.Time, begun map[string]int) {
	t.Helper()

	took := time.Since(began)
	// Some at once, and then one in a second; and for each there may be a list.
	most, bound := 0, 2*(10+int(took.Seconds()))

	for path, n := range begun {
		if n > bound {
			t.Errorf("%s was asked for %d times in %s, and %d are enough", path, n, took, bound)
		}

		most = max(most, n)
	}

	if most < 2 {
		t.Error("nothing was tried again")
	}

	t.Logf("in %s at most %d lists and watches of one of %d kinds began", took, most, len(begun))
}
