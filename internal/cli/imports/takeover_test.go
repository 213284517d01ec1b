package imports

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

func TestWhatATakeOverCannotSee(t *testing.T) {
	t.Parallel()

	namespaces := map[string]facts.Namespace{"open": {}, "shut": {Closed: "you may not read it"}, "going": {Terminating: true}}
	list := func(resource, namespace string) snapshot.Denied {
		return snapshot.Denied{Verb: "list", Resource: resource, Namespace: namespace}
	}

	for name, tc := range map[string]struct {
		reason string
		denied snapshot.Denied
		hides  bool
	}{
		"roles":          {"copies may be there", list("roles", "shut"), true},
		"bindings":       {"they are copies, too", list("rolebindings", "shut"), true},
		"pods":           {"nobody projects them", list("pods", "shut"), false},
		"going":          {"nothing is left there in a moment", list("roles", "going"), false},
		"not there":      {"nothing can be left there", list("roles", "none"), false},
		"in the cluster": {"IBM's operator projects into namespaces", list("clusterroles", ""), false},
	} {
		if got := unread(namespaces, []snapshot.Denied{tc.denied}); slices.Contains(got, tc.denied) != tc.hides {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

// TestPlacesOfTwoScopesAreNamedOnce: changes are sorted by scope first, so two scopes that share members name each of these
// twice, and not one after the other.
func TestPlacesOfTwoScopesAreNamedOnce(t *testing.T) {
	t.Parallel()

	var changes []predict.Change
	for _, namespace := range []string{"a", "a", "c", "a", "b", "c"} {
		changes = append(changes, predict.Change{Change: plan.Change{Namespace: namespace}})
	}

	if got, want := placesOf(changes), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("the places are %v, want %v", got, want)
	}
}
