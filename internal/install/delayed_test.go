package install

import (
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// TestDelayed: what may pass by itself is no failure, and is told of what is installed only.
func TestDelayed(t *testing.T) {
	t.Parallel()

	w := snapshotOf([]string{"a"}, member("op.v1"))
	w.running(w.CSVs[0], 1)
	finished := w.Finish(w.CSVs[0], w.Decide(w.CSVs[0]), "")

	if finished.Phase != olm.CSVPhaseSucceeded || finished.Delayed("").Message != finished.Message {
		t.Errorf("without a delay it is %s: %s", finished.Phase, finished.Delayed("").Message)
	}

	v := finished.Delayed("it changed meanwhile")
	if v.Phase != olm.CSVPhaseInstalling || v.Reason != olm.CSVReasonWaiting ||
		!strings.HasSuffix(v.Message, "again soon: it changed meanwhile") {
		t.Errorf("after a delay it is %s (%s): %s", v.Phase, v.Reason, v.Message)
	}

	absent := snapshotOf(nil, member("op.v1"))
	if v := absent.Decide(absent.CSVs[0]); v.Delayed("something").Phase != v.Phase {
		t.Errorf("what is not installed is told as %s", v.Delayed("something").Phase)
	}
}
