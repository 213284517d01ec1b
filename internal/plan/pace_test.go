package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
)

// lease is what most operators wait for before they lead: the default of controller-runtime. An operator that is restarted
// leads no sooner than that after the one before it ended.
const lease = 15 * time.Second

// play is an operator namespace with one reader, in which namespaces join as time goes by.
type play struct {
	t        *testing.T
	facts    *facts.Facts
	scope    scope.Scope
	reader   *facts.Workload
	pod      *facts.Pod
	restarts []time.Duration
}

func newPlay(t *testing.T, interval time.Duration) *play {
	t.Helper()

	f := cluster()
	f.RestartInterval = interval
	w, p := reader(f)
	g := &play{t: t, facts: f, scope: newScope("s"), reader: w, pod: p}
	g.join(0)

	// The reader begins with the first list, and leads.
	p.Created, p.Began = now.Add(time.Second), now.Add(time.Second)

	return g
}

// settle plans and carries out until nothing is left to do now, and returns when there will be.
func (g *play) settle(at time.Duration) (again time.Duration) {
	g.t.Helper()

	g.facts.Now = now.Add(at)

	for range 10 {
		p := plan.New([]scope.Scope{g.scope}, g.facts)
		for i := range p.Lists {
			carryOutList(g.facts, &p.Lists[i])
		}

		for i := range p.Restarts {
			carryOutRestart(g.facts, &p.Restarts[i])
			g.restarts = append(g.restarts, at)
			g.pod.Created, g.pod.Began = g.facts.Now, g.facts.Now
		}

		if plantest.IsEmpty(&p) && p.Again.IsZero() {
			return 0
		} else if plantest.IsEmpty(&p) {
			return p.Again.Sub(now)
		}
	}

	g.t.Fatal("it does not come to rest")

	return 0
}

// join adds a member at a time.
func (g *play) join(at time.Duration) time.Duration {
	g.t.Helper()

	name := fmt.Sprintf("m%04d", len(g.scope.Members.Named))
	namespaces(g.facts, name)
	g.scope.Members.Named = append(g.scope.Members.Named, name)

	return g.settle(at)
}

// joins has a namespace join at every step until the end, and goes on until nothing is pending.
func (g *play) joins(from, every, until time.Duration) {
	g.t.Helper()

	again := time.Duration(0)

	for at := from; at <= until; at += every {
		for again != 0 && again < at {
			again = g.settle(again)
		}

		again = g.join(at)
	}

	for again != 0 {
		again = g.settle(again)
	}
}

// leads is the share of a time in which the operator leads.
func (g *play) leads(until time.Duration) float64 {
	var lost time.Duration

	for i, at := range g.restarts {
		end := until
		if i+1 < len(g.restarts) {
			end = min(end, g.restarts[i+1])
		}

		lost += max(0, min(lease, end-at))
	}

	return 1 - float64(lost)/float64(until)
}

// TestShareOfTimeThatAnOperatorLeads holds what the restarts cost an operator while namespaces join for half an hour.
func TestShareOfTimeThatAnOperatorLeads(t *testing.T) {
	t.Parallel()

	const long = 30 * time.Minute

	for _, every := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		g := newPlay(t, plan.DefaultRestartInterval)
		g.joins(10*time.Second, every, long)

		share := g.leads(long)
		t.Logf("a join every %s: it leads %.0f %% of half an hour, %d restarts", every, 100*share, len(g.restarts))

		if share < 0.9 {
			t.Errorf("a join every %s leaves the operator %.0f %% of the time", every, 100*share)
		}
	}
}

// TestRestartsAreNoCloserThanTheInterval holds the bounds: never closer than the interval, never further apart than five minutes
// while something waits, and each time twice as far.
func TestRestartsAreNoCloserThanTheInterval(t *testing.T) {
	t.Parallel()

	g := newPlay(t, 30*time.Second)
	g.joins(10*time.Second, 5*time.Second, 20*time.Minute)

	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}

	for i := 1; i < len(g.restarts); i++ {
		if gap := g.restarts[i] - g.restarts[i-1]; gap != want[min(i-1, len(want)-1)] {
			t.Fatalf("restarts at %v: the gap before %s is %s", g.restarts, g.restarts[i], gap)
		}
	}
}

// TestSingleChangeRestartsAtOnce holds it for the first change ever, and for one after everything was quiet, whatever was before.
func TestSingleChangeRestartsAtOnce(t *testing.T) {
	t.Parallel()

	g := newPlay(t, 30*time.Second)
	g.joins(10*time.Second, 5*time.Second, 20*time.Minute)

	last := g.restarts[len(g.restarts)-1]
	g.restarts = nil

	for _, at := range []time.Duration{last + 61*time.Second, last + 200*time.Second, last + time.Hour} {
		g.join(at)

		if n := len(g.restarts); n == 0 || g.restarts[n-1] != at {
			t.Errorf("the change at %s restarts at %v", at, g.restarts)
		}
	}
}

// TestIntervalFallsBackWhenQuiet holds that what a burst cost once is not what the next burst costs.
func TestIntervalFallsBackWhenQuiet(t *testing.T) {
	t.Parallel()

	g := newPlay(t, 30*time.Second)
	g.joins(10*time.Second, 5*time.Second, 20*time.Minute)

	g.restarts = nil
	g.joins(2*time.Hour, time.Second, 2*time.Hour+40*time.Second)

	if len(g.restarts) < 2 || g.restarts[1]-g.restarts[0] != 30*time.Second {
		t.Errorf("restarts at %v", g.restarts)
	}
}

// TestMarkOfATimeToComeHoldsNothingUp: whoever may write a reader writes any time into its mark, and so did a manager whose clock
// was ahead.
func TestMarkOfATimeToComeHoldsNothingUp(t *testing.T) {
	t.Parallel()

	g := newPlay(t, 30*time.Second)
	g.joins(time.Hour, time.Second, time.Hour)

	g.reader.Restarted = now.Add(10 * 365 * 24 * time.Hour)
	before := len(g.restarts)

	if again := g.join(2 * time.Hour); again != 0 || len(g.restarts) != before+1 {
		t.Errorf("it restarts %d times, and again in %s", len(g.restarts)-before, again)
	}
}
