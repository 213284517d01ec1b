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

	if finished.Phase != olm.CSVPhaseSucceeded || finished.Delayed("", true).Message != finished.Message {
		t.Errorf("without a delay it is %s: %s", finished.Phase, finished.Delayed("", true).Message)
	}

	v := finished.Delayed("it changed meanwhile", false)
	if v.Phase != olm.CSVPhaseInstalling || v.Reason != olm.CSVReasonWaiting ||
		!strings.HasSuffix(v.Message, "again soon: it changed meanwhile") {
		t.Errorf("after a delay it is %s (%s): %s", v.Phase, v.Reason, v.Message)
	}

	v = finished.Delayed("no answer yet", true)
	if v.Phase != olm.CSVPhaseSucceeded || v.Reason != finished.Reason || !strings.HasSuffix(v.Message, "written: no answer yet") {
		t.Errorf("while an answer is late it is %s (%s): %s", v.Phase, v.Reason, v.Message)
	}

	finished.Phase = olm.CSVPhaseInstalling
	if v := finished.Delayed("no answer yet", true); v.Phase != olm.CSVPhaseInstalling || v.Message == finished.Message {
		t.Errorf("one whose Deployment is not ready is told as %s: %s", v.Phase, v.Message)
	}

	absent := snapshotOf(nil, member("op.v1"))
	if v := absent.Decide(absent.CSVs[0]); v.Delayed("something", true).Phase != v.Phase {
		t.Errorf("what is not installed is told as %s", v.Delayed("something", true).Phase)
	}
}
