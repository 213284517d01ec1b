package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// Environment variables by which a run is longer, or another one.
const (
	movesVariable = "AMBIT_MOVES"
)

// theirs has the worlds of this test share clusters with no other test: what they do in the whole cluster, and what is refused in
// them, is in the plans of others. No other test gives this interval. And what waits for a finalizer waits for longer than a test
// runs.
var theirs = []string{"--restart-interval=900ms", "--finish-grace=2h"}

// TestPlanIsWhatHappens makes random moves in random worlds. Before each of them it asks what the move would do, and holds that
// just that happens: the same objects are written, with the same content, the same lists and restarts, and the same words in
// status. After that nothing is left to do, and nothing more happens.
func TestPlanIsWhatHappens(t *testing.T) {
	for _, setting := range settings() {
		t.Run(setting.name, func(t *testing.T) {
			w := newDrawn(t, &setting)

			for n := range number(t, movesVariable, setting.moves) {
				w.step(n, w.draw())
			}

			if m := w.leave(); m != nil {
				w.step(-1, m)
			}

			w.ends()
		})
	}
}

// setting is a kind of world.
type setting struct {
	name, profile string
	// scopes and installs say which families of kinds there are.
	scopes, installs bool
	// moves is how many there are by default.
	moves int
}

func settings() []setting {
	all := []setting{
		{name: "Scopes", profile: "cluster", scopes: true, moves: 5},
		{name: "Installs", profile: "cluster", installs: true, moves: 5},
		{name: "Both", profile: "cluster", scopes: true, installs: true, moves: 6},
		{name: "DelegatedScopes", profile: "delegated", scopes: true, moves: 4},
		{name: "DelegatedInstalls", profile: "delegated", installs: true, moves: 4},
		{name: "DelegatedBoth", profile: "delegated", scopes: true, installs: true, moves: 4},
		{name: "NamespacedScopes", profile: "namespaced", scopes: true, moves: 4},
		{name: "NamespacedInstalls", profile: "namespaced", installs: true, moves: 5},
		{name: "NamespacedBoth", profile: "namespaced", scopes: true, installs: true, moves: 4},
	}

	if testing.Short() {
		for i := range all {
			all[i].moves = 3
		}
	}

	return all
}

// number is what a variable says, or otherwise a default.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()

	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q; give a number", variable, text)
	}

	return n
}

// draws gives the same in every run, unless a variable asks for something else. Each world has numbers of its own.
func draws(t *testing.T, s *setting) *rand.Rand {
	t.Helper()

	t.Logf("%s=%s", movesVariable, os.Getenv(movesVariable))

	name := uint64(0)
	for _, c := range s.name {
		name = name*31 + uint64(c)
	}

	return testcluster.Draws(t, name)
}

// step makes one move.
func (w *drawn) step(n int, m *move) {
	w.Helper()

	w.history = append(w.history, fmt.Sprintf("# %d: %s\n%s", n, m.what(), m.text(w.T)))

	w.settled()

	before := w.look()
	w.unmoved(before)

	p := w.plan(m)
	w.history[len(w.history)-1] += "planned: " + p.String() + "\n"

	if p.refusesFiles() {
		w.refuses(m, p)
		return
	}

	before.apply(w, w.apply(m))
	before.without(w.ending)
	p.without(w.ending)
	w.finishes(p, before)

	var after *state

	if err := testbed.Until(testbed.Patience, func() error {
		w.takeIn()

		after = w.look()
		after.without(w.ending)

		return p.compare(before, after, w)
	}); err != nil {
		w.fail(p, err)
	}

	if m := w.everything(after); len(m.objects) > 0 {
		if again := w.plan(m); again.promises() {
			w.fail(again, fmt.Errorf("what was planned for happened, and yet there is more to do: %s", again))
		}
	}

	w.last = after
	if len(p.data.Grants) > 0 {
		w.grants = p.data.Grants
	}
}

// fail ends the test with the moves that led there.
func (w *drawn) fail(p *promise, err error) {
	w.Helper()
	w.Fatalf("%v\n\nplanned: %s\nnot read: %v\nnotes: %v\n\nthe last move:\n%s\nall moves:\n%s", err, p,
		p.data.NotRead, p.data.Notes, w.history[len(w.history)-1], strings.Join(w.history[:len(w.history)-1], ""))
}

// unmoved holds that nothing happened after what was planned for.
func (w *drawn) unmoved(now *state) {
	w.Helper()

	if w.last == nil {
		return
	}

	now.without(w.ending)

	if changes := changesBetween(w.last, now); len(changes) > 0 {
		w.Fatalf("something happened that no plan said: %s\nall moves:\n%s", describe(changes), strings.Join(w.history, ""))
	}
}

// ends holds that nothing is left to do.
func (w *drawn) ends() {
	w.Helper()
	w.settled()
	w.RestIn(w.namespaces()...)
	w.unmoved(w.look())
}
