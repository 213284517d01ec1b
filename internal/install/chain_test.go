package install

import (
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"
)

// chain is a world with these CSVs, of which each is "<name>" or "<name><replaced", with a ! behind it once it has succeeded.
// Decided is about the first.
func chain(links ...string) *Snapshot {
	csvs, run := make([]*olm.ClusterServiceVersion, 0, len(links)), []*olm.ClusterServiceVersion(nil)

	for _, link := range links {
		link, succeeded := strings.CutSuffix(link, "!")
		name, replaced, _ := strings.Cut(link, "<")

		csv := member(name)
		csv.Spec.Replaces = replaced

		if succeeded {
			csv.Status.Phase, run = olm.CSVPhaseSucceeded, append(run, csv)
		}

		csvs = append(csvs, csv)
	}

	w := snapshotOf([]string{"a"}, csvs...)
	for _, csv := range run {
		w.running(csv, 1)
	}

	return w
}

// TestDecideChain: of several that replace one another, the last one is what there is to be, and the oldest goes first.
func TestDecideChain(t *testing.T) {
	t.Parallel()

	ready := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}
	goes := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseDeleting, olm.CSVReasonReplaced, "d", "has been replaced"}
	}
	rivals := func(reason, with string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseFailed, olm.CSVReasonOwnerConflict, "", "clusterserviceversion " + with + " of"}
	}
	waits := func(reason, effects, by string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, effects, "being replaced by csv: " + by}
	}
	taken := func(w *Snapshot, by int) *Snapshot {
		w.running(w.CSVs[by], 1)
		w.Holding = map[string]map[string]struct{}{w.CSVs[0].Name: {"a": {}}}

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
		"Gap":         rivals("what is not there links nothing", "v3", chain("v1", "v3<v2!")),
		"Itself":      ready("nonsense replaces nothing", chain("v1<v1!")),
		"Circle":      rivals("one that would replace itself replaces nothing", "v2", chain("v1<v2!", "v2<v1!")),
		"AfterCircle": ready("what comes after a cycle is the last", chain("v3<v2!", "v2<v1!", "v1<v2!")),
		"InCircleYet": waits(
			"of a cycle that is replaced, none is there for itself", "", "v3", chain("v1<v2", "v2<v1", "v3<v2"),
		),
		"InCircle": goes("of a cycle that is replaced all go", chain("v1<v2", "v2<v1", "v3<v2!")),
	})
}

// TestLineage: what is worked out once for all CSVs is what following each of them says.
func TestLineage(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f", "g"}[:rapid.IntRange(1, 7).Draw(t, "CSVs")]
		some := rapid.SampledFrom(append(slices.Clone(names), "", "absent"))

		var csvs []*olm.ClusterServiceVersion

		replaced := map[string]string{}

		for _, name := range names {
			csv := member(name)
			csv.Spec.Replaces = some.Draw(t, "replaced by "+name)
			replaced[name] = csv.Spec.Replaces
			csvs = append(csvs, csv)
		}

		earlier := func(name string) []string {
			var out []string

			for at := replaced[name]; slices.Contains(names, at) && !slices.Contains(out, at); at = replaced[at] {
				if at == name {
					return nil
				}

				out = append(out, at)
			}

			return out
		}

		l := newLineage(csvs, func(*olm.ClusterServiceVersion) bool { return false })
		marked := some.Draw(t, "marked")
		spread := l.spread(func(c *olm.ClusterServiceVersion) bool { return c.Name == marked })

		for _, newer := range csvs {
			all := earlier(newer.Name)

			for _, older := range csvs {
				if got, want := l.replaces(newer, older), slices.Contains(all, older.Name); got != want {
					t.Fatalf("%s replaces %s: %t, of %v", newer.Name, older.Name, got, replaced)
				}
			}

			if got, want := spread[newer.Name], slices.Contains(append(all, newer.Name), marked); got != want {
				t.Fatalf("%s or one that it replaces is %s: %t, of %v", newer.Name, marked, got, replaced)
			}

			if got := l.next(newer); (got != nil) != slices.ContainsFunc(names, func(name string) bool {
				return slices.Contains(earlier(name), newer.Name)
			}) {
				t.Fatalf("%s is next after %s, of %v", got.GetName(), newer.Name, replaced)
			}
		}
	})
}
