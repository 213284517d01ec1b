// Package operators_test runs operators of others under Ambit: real ones, built from their Go modules and not changed, as real
// processes with the token of their own service account. What they may do in other namespaces comes from Ambit alone.
package operators_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

// update has what was measured written into docs/operators.md.
var update = flag.Bool("update", false, "write docs/operators.md")

func TestMain(m *testing.M) {
	// One operator after the other: what is measured is what a user waits for, and not what the machine does besides.
	if err := flag.Set("test.parallel", "1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	code := beds.Run(m)

	if *update && code == 0 {
		if err := writeTable(); err != nil {
			fmt.Fprintln(os.Stderr, err)

			code = 1
		}
	}

	os.Exit(code)
}

// TestOperators runs each operator through what happens to its scope. In the profile delegated, Ambit has no right of its own to
// give.
func TestOperators(t *testing.T) {
	for i := range operators {
		op := &operators[i]
		t.Run(op.name, func(t *testing.T) {
			w := install(t, op, "delegated")
			for _, flow := range []struct {
				name string
				run  func(*world)
			}{{"join", joins}, {"leave", leaves}, {"withdrawn", withdrawn}} {
				t.Run(flow.name, func(t *testing.T) { flow.run(w.of(t)) })
			}
		})
	}
}

// TestFinish has each operator let go of what is in a member that is deleted. Operators may do so where Ambit itself writes.
func TestFinish(t *testing.T) {
	for i := range operators {
		op := &operators[i]
		t.Run(op.name, func(t *testing.T) { finishes(install(t, op, "cluster")) })
	}
}

// TestEightJoins holds that somebody leads most of the time while a namespace joins every few seconds, with the pauses between
// restarts that users have.
func TestEightJoins(t *testing.T) {
	for i := range operators {
		op := &operators[i]
		t.Run(op.name, func(t *testing.T) { eightJoins(install(t, op, "delegated", "--restart-interval=30s")) })
	}
}
