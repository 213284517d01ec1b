package group

import (
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
)

// TestWhoIsDisturbed: one team changes where its operator works as often as it likes. Only those are planned again that may work
// in the same place; the operators of a thousand others bring the same API.
func TestWhoIsDisturbed(t *testing.T) {
	t.Parallel()

	group := func(status []string, targets ...string) *operatorsv1.OperatorGroup {
		g := &operatorsv1.OperatorGroup{}
		g.Spec.TargetNamespaces, g.Status.Namespaces = targets, status

		return g
	}

	for reason, tc := range map[string]struct {
		group *operatorsv1.OperatorGroup
		in    []string
		is    bool
	}{
		"it works elsewhere":                       {group(nil, "team"), []string{"evil", "more"}, false},
		"it is for the same namespace":             {group(nil, "team", "more"), []string{"evil", "more"}, true},
		"it still holds something there":           {group([]string{"more"}, "team"), []string{"evil", "more"}, true},
		"the other one works in its own namespace": {group(nil, "elsewhere"), []string{"evil", "team"}, true},
		"the other one works everywhere":           {group(nil, "team"), []string{"evil", ""}, true},
		"it is for all namespaces":                 {group(nil), []string{"evil"}, true},
		"it was for all namespaces until now":      {group([]string{""}, "team"), []string{"evil"}, true},
		"nobody knows where it works":              {nil, []string{"evil"}, true},
	} {
		n := &neighbour{group: tc.group}
		if tc.group != nil {
			n.targets = sets.New(tc.group.Status.Namespaces...)
		}

		if is := n.mayWorkIn("team", sets.New(tc.in...)); is != tc.is {
			t.Errorf("%s: %t", reason, is)
		}
	}
}

// TestWhatChangesForRivals: a target in which nobody let an operator in is no place where it works, so to name one, and to take
// it back, changes nothing for others.
func TestWhatChangesForRivals(t *testing.T) {
	t.Parallel()

	csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "op"}}

	type change struct {
		targets, held []string
		is            bool
		places        []string
	}

	b := &brought{}

	for i, c := range []change{
		{targets: []string{"evil"}, held: []string{"evil"}, is: true, places: []string{"evil"}},
		{targets: []string{"evil", "victim"}, held: []string{"evil"}},
		{targets: []string{"evil"}, held: []string{"evil"}},
		{targets: []string{"evil", "more"}, held: []string{"evil", "more"}, is: true, places: []string{"evil", "more"}},
		// It is told that the target went, and again once nothing is held there any more.
		{targets: []string{"evil"}, held: []string{"evil", "more"}, is: true, places: []string{"evil", "more"}},
		{targets: []string{"evil"}, held: []string{"evil"}, is: true, places: []string{"evil", "more"}},
		{targets: []string{"evil"}, held: []string{"evil", ""}, is: true, places: []string{"", "evil"}},
		{targets: []string{"evil", "victim"}, held: []string{"evil", ""}, is: true, places: []string{"", "evil"}},
	} {
		held := map[string]struct{}{}
		for _, name := range c.held {
			held[name] = struct{}{}
		}

		w := &snapshot{Snapshot: install.Snapshot{
			Namespace: "evil", Group: &install.TargetedGroup{Group: &install.Group{UID: "group"}, Targets: c.targets},
			Holding: map[string]map[string]struct{}{"op": held},
		}}
		at, places := where(w, csv)

		apis, in := b.change("evil", map[types.UID]bringing{"op": {apis: []string{"api"}, where: at, places: places}})
		if apis.Has("api") != c.is || !slices.Equal(sets.List(in), c.places) && c.is {
			t.Errorf("change %d: %v in %v", i, sets.List(apis), sets.List(in))
		}
	}
}
