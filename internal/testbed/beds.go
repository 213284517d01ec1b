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

// Beds are the clusters of a test binary, one for a profile and the arguments of its manager, and a second one of a profile for
// tests that want it alone. Each is started by the first test that needs it.
type Beds struct {
	mu   sync.Mutex
	beds map[string]*bed
}

type bed struct {
	once sync.Once
	bed  *Bed
	err  error
	// alone is held by the one test that has the cluster to itself.
	alone sync.Mutex
}

// Begin starts a test on the cluster of a profile, beside others, with a manager that has further arguments.
func (b *Beds) Begin(t *testing.T, profile string, arguments ...string) *World {
	t.Helper()

	return b.of(t, strings.Join(append([]string{profile}, arguments...), " "), profile, arguments...).bed.Begin(t)
}

// Alone starts a test on a second cluster of a profile, where no other test runs meanwhile: it may stop the manager, or take
// away what the profile installed, and has to put it back.
func (b *Beds) Alone(t *testing.T, profile string) *World {
	t.Helper()

	of := b.of(t, profile+", alone", profile)
	w := of.bed.Begin(t)

	of.alone.Lock()
	t.Cleanup(of.alone.Unlock)

	return w
}

// Quiet starts a test on the second cluster of a profile before all those that run beside each other, so that the machine is its
// own: it measures what something costs.
func (b *Beds) Quiet(t *testing.T, profile string) *World {
	t.Helper()

	w := b.of(t, profile+", alone", profile).bed.world(t)
	w.forgetPeak()

	return w
}

func (b *Beds) of(t *testing.T, name, profile string, arguments ...string) *bed {
	t.Helper()

	b.mu.Lock()

	if b.beds == nil {
		b.beds = map[string]*bed{}
	}

	of := b.beds[name]
	if of == nil {
		of = &bed{}
		b.beds[name] = of
	}

	b.mu.Unlock()

	of.once.Do(func() { of.bed, of.err = Start(context.Background(), profile, arguments...) })

	if of.err != nil {
		t.Fatalf("starting the profile %s: %v", name, of.err)
	}

	return of
}

// Run runs the tests of a package and stops the clusters. It returns the exit code.
func (b *Beds) Run(m *testing.M) int {
	flag.Parse()
	// The tests wait for the cluster more than they compute, so more of them run at once than there are cores.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		if err := flag.Set("test.parallel", "8"); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}

	log.SetLogger(logr.Discard()) // What clients log is told by the errors that they return.

	code := m.Run()

	for profile, of := range b.beds {
		if of.bed == nil {
			continue
		}

		if err := of.bed.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: stopping the profile %s: %v\n", profile, err)

			code = max(code, 1)
		}
	}

	return code
}
