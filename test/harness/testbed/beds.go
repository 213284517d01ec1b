package testbed

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// clustersAtOnce is how many clusters the tests of one package use at a time. hack/test.sh has as many for each package that it
	// runs at a time, so that none waits for another's.
	clustersAtOnce = 1

	// testsAtOnce is how many tests of a package run at a time: they wait for the cluster more than they compute.
	testsAtOnce = 8
)

// Beds are the clusters of a test binary, one for each profile and arguments of its manager. They run one after the other: each
// begins with the first test that needs it, and ends after the last one that waits for it.
type Beds struct {
	mu      sync.Mutex
	changed *sync.Cond
	beds    map[string]*bed
	// running counts the tests, open the clusters.
	running, open int
}

type bed struct {
	profile   string
	arguments []string
	bed       *Bed
	err       error
	// opening says that somebody starts or stops it. running counts the tests on it, and waiting those that want to be.
	opening          bool
	running, waiting int
}

// Begin starts a test on the cluster of a profile, beside others, with a manager that has further arguments.
func (b *Beds) Begin(t *testing.T, profile string, arguments ...string) *World {
	t.Helper()
	t.Parallel()

	return b.enter(t, nameOf(profile, arguments), profile, arguments...).world(t)
}

// Together has a table, the rows of which begin on clusters of several profiles, wait until every other test has begun. The rows
// of all tables that are about one profile then follow one another. Otherwise the cluster is put back, and gets the other
// profile, between any two tables.
func (*Beds) Together(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// Own starts a test on a cluster that no other test uses, before or after, beside others that run.
func (b *Beds) Own(t *testing.T, profile string, arguments ...string) *World {
	t.Helper()
	t.Parallel()

	return b.enter(t, t.Name(), profile, arguments...).world(t)
}

// Alone starts a test on the cluster of a profile before those that run beside each other, so that no other test runs meanwhile:
// it may stop the manager, or take away what the profile installed, and has to put it back.
func (b *Beds) Alone(t *testing.T, profile string) *World {
	t.Helper()

	return b.enter(t, nameOf(profile, nil), profile).world(t)
}

// Quiet starts a test that measures what something costs, as Alone does.
func (b *Beds) Quiet(t *testing.T, profile string) *World {
	t.Helper()

	w := b.Alone(t, profile)
	w.forgetPeak()

	return w
}

// nameOf names the cluster that all tests share which want a profile and further arguments of its manager.
func nameOf(profile string, arguments []string) string {
	return strings.Join(append([]string{profile}, arguments...), " ")
}

// enter waits until there is room for a test on a bed, and keeps it until the test ends.
func (b *Beds) enter(t *testing.T, name, profile string, arguments ...string) *Bed {
	t.Helper()

	b.mu.Lock()
	defer b.mu.Unlock()

	of := b.of(name, profile, arguments)

	of.waiting++
	for !b.admits(of) {
		b.changed.Wait()
	}
	of.waiting--

	if of.err != nil {
		t.Fatalf("starting Ambit with the profile %s: %v", profile, of.err)
	}

	b.running++
	of.running++

	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()

		b.running--
		of.running--

		b.changed.Broadcast()
	})

	return of.bed
}

func (b *Beds) of(name, profile string, arguments []string) *bed {
	if b.beds == nil {
		b.beds, b.changed = map[string]*bed{}, sync.NewCond(&b.mu)
	}

	if b.beds[name] == nil {
		b.beds[name] = &bed{profile: profile, arguments: arguments}
	}

	return b.beds[name]
}

// admits says whether a test may run on a bed now. It starts the bed if there is a cluster for it.
func (b *Beds) admits(of *bed) bool {
	switch {
	case of.err != nil:
		return true
	case of.bed != nil:
		return b.running < testsAtOnce
	case of.opening:
		return false
	case b.open >= clustersAtOnce && !b.closeOne():
		return false
	}

	b.start(of)

	return of.err != nil || b.running < testsAtOnce
}

// start starts a bed while others go on.
func (b *Beds) start(of *bed) {
	of.opening = true
	b.open++

	b.mu.Unlock()

	started, err := Start(context.Background(), of.profile, of.arguments...)

	b.mu.Lock()

	of.opening, of.bed, of.err = false, started, err
	if err != nil {
		b.open--
	}

	b.changed.Broadcast()
}

// closeOne ends a bed that no test uses or waits for. If it fails to end, all later tests of that bed fail, so that the failure
// is not lost.
func (b *Beds) closeOne() bool {
	for _, of := range b.beds {
		if of.bed == nil || of.opening || of.running > 0 || of.waiting > 0 {
			continue
		}

		ended := of.bed
		of.bed, of.opening = nil, true

		b.mu.Unlock()

		err := ended.Stop()

		b.mu.Lock()

		of.opening, of.err = false, err
		b.open--

		return true
	}

	return false
}

// Run runs the tests of a package and stops the clusters. It returns the exit code.
func (b *Beds) Run(m *testing.M) int {
	flag.Parse()
	// Tests that wait for a cluster of their own are no reason for others to wait: Beds itself says how many run.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		if err := flag.Set("test.parallel", "1000"); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}

	log.SetLogger(logr.Discard()) // What clients log is also in the errors that they return.

	code := m.Run()

	for name, of := range b.beds {
		err := of.err
		if of.bed != nil {
			err = of.bed.Stop()
		}

		if err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: the profile %s: %v\n", name, err)

			code = max(code, 1)
		}
	}

	return code
}
