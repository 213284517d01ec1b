package install

import (
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// chain is a world with these CSVs, of which each is "<name>" or "<name><replaced", with a ! behind it once it has succeeded.
// Decided is about the first.
func chain(links ...string) *World {
	csvs := make([]*olm.ClusterServiceVersion, 0, len(links))

	for _, link := range links {
		link, succeeded := strings.CutSuffix(link, "!")
		name, replaced, _ := strings.Cut(link, "<")

		csv := member(name)
		csv.Spec.Replaces = replaced

		if succeeded {
			csv.Status.Phase = olm.CSVPhaseSucceeded
		}

		csvs = append(csvs, csv)
	}

	return worldOf([]string{"a"}, csvs...)
}

// TestDecideChain: of several that replace one another, the last one is what there is to be, and the oldest goes first.
func TestDecideChain(t *testing.T) {
	t.Parallel()

	ready := func(reason string, w *World) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}
	goes := func(reason string, w *World) decision {
		return decision{reason, w, olm.CSVPhaseDeleting, olm.CSVReasonReplaced, "hd", "has been replaced"}
	}
	waits := func(reason, effects, by string, w *World) decision {
		return decision{reason, w, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, effects, "being replaced by csv: " + by}
	}
	taken := func(w *World, by int) *World {
		w.running(w.CSVs[by], 1)

		return w
	}

	check(t, map[string]decision{
		"OldestGoes":  goes("what it did, the last one does", chain("v1", "v2<v1", "v3<v2!")),
		"OldestFirst": waits("without it, the oldest would come back", "", "v3", chain("v2<v1", "v1", "v3<v2!")),
		"MiddleGoes":  goes("the oldest is gone", chain("v2<v1", "v3<v2!")),
		"LastStays":   ready("nothing replaces it", chain("v3<v2!", "v2<v1", "v1")),
		"NotYet":      waits("the last one does not run yet", "", "v2", chain("v1", "v2<v1", "v3<v2")),
		"KeepsThemWhileTaken": waits(
			"its pods run until those of the last one do", "h", "v2", taken(chain("v1", "v2<v1", "v3<v2"), 2),
		),
		"MiddleRuns":  goes("one that is later runs, though not the last", chain("v1", "v2<v1!", "v3<v2")),
		"TakesOver":   ready("it owns what the oldest owns", chain("v3<v2", "v2<v1", "v1")),
		"Branches":    goes("one of two that replace it runs", chain("v1", "v2<v1", "v3<v1!")),
		"Gap":         ready("what is not there links nothing", chain("v1", "v3<v2!")),
		"Itself":      ready("nonsense replaces nothing", chain("v1<v1!")),
		"Circle":      ready("one that would replace itself replaces nothing", chain("v1<v2!", "v2<v1!")),
		"AfterCircle": ready("what comes after a circle is the last", chain("v3<v2!", "v2<v1!", "v1<v2!")),
		"InCircle":    goes("of a circle that is replaced all go", chain("v1<v2", "v2<v1", "v3<v2!")),
	})
}
