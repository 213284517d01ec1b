package faults_test

import (
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestOnlyTheNamespacesThatAreServed: a manager with --namespaces sees no scope elsewhere, and must not take what those
// scopes projected for something that nobody wants any more.
func TestOnlyTheNamespacesThatAreServed(t *testing.T) {
	ours, theirs := newWorld(t, "ours", 1, 1), newWorld(t, "theirs", 1, 1)

	admin, err := suite.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}

	narrow, err := embedded.NewManager(t.Context(), admin, t.TempDir(), suite.program,
		"--namespaces="+ours.ops, "--restart-interval="+restartInterval.String())
	if err != nil {
		t.Fatal(err)
	}

	serve := func(do func()) {
		kill(t)

		if err := narrow.Start(); err != nil {
			t.Fatal(err)
		}

		do()

		if err := narrow.Kill(); err != nil {
			t.Fatal(err)
		}

		start(t)
	}

	serve(func() {
		theirs.scope(theirs.members...)
		ours.scope(ours.members...)
		ours.settled()

		if list := theirs.list(); !strings.Contains(list, "not found") {
			t.Errorf("a scope in another namespace was served: %q", list)
		}
	})
	theirs.settled()

	before := theirs.list()

	serve(func() {
		ours.scope()
		ours.settled()

		if f, err := theirs.facts(); err != nil || len(f.Projected[theirs.members[0]]) == 0 {
			t.Errorf("what was projected for another namespace is gone: %v", err)
		}
	})
	theirs.settled()

	if after := theirs.list(); after != before {
		t.Errorf("their list went from %q to %q", before, after)
	}
}
