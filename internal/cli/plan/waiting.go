package plan

import (
	"fmt"
	"slices"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/report"
)

// addWaiting names what waits in the namespaces that leave, and the objects whose finalizer nobody will remove any more.
func addWaiting(v *reading.Cluster, f *predict.ScopePrediction, out *Scope) {
	// Those that are being deleted are among what failed.
	for _, name := range slices.Concat(out.Leaves, failedIn(out.Failed)) {
		found, looked := v.Waiting[f.WaitingKey(name)]
		if !looked {
			continue
		}

		stay := "permissions stay until nothing waits"
		if found.Count == 0 {
			stay = "if something does, permissions stay" // The manager may see more than the caller, or less.
		}

		if found.Any() {
			out.Finishes = append(out.Finishes, Finish{Namespace: name, Message: fmt.Sprintf("%s; %s, for %s at most",
				report.Waits(&found, true), stay, v.Settings.FinishGrace)})
		}

		if found.KeptCount > 0 {
			out.Says = append(out.Says, fmt.Sprintf("in %s, %s have a finalizer and are not being deleted; once the operators are gone, "+
				"nobody takes it off", name, report.Listed(found.Kept, found.KeptCount)))
		}
	}
}
