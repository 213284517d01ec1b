package plan_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestMembers: what is named, what is selected, and what of both cannot be served and is told.
func TestMembers(t *testing.T) {
	t.Parallel()

	team := map[string]string{"team": "a"}
	f := cluster()
	f.Namespaces = map[string]facts.Namespace{
		"ops": {Labels: team}, "free": {}, "selected": {Labels: team}, "kube-system": {Labels: team}, "ambit-system": {Labels: team},
		"leaving": {Labels: team, Terminating: true}, "kube-leaving": {Labels: team, Terminating: true},
		"other-leaving": {Terminating: true},
	}

	leaving := plan.Absent{Namespace: "leaving", Terminating: true}

	for name, tc := range map[string]struct {
		named    []string
		selected bool
		members  []string
		absent   []plan.Absent
	}{
		"named":                      {[]string{"free", "ops", "selected"}, false, []string{"free", "selected"}, nil},
		"not there":                  {[]string{"free", "gone"}, false, []string{"free"}, []plan.Absent{{Namespace: "gone"}}},
		"named and being deleted":    {[]string{"leaving"}, false, nil, []plan.Absent{leaving}},
		"selected and being deleted": {nil, true, []string{"selected"}, []plan.Absent{leaving}},
		"both": {
			[]string{"free", "leaving", "zone"}, true, []string{"free", "selected"}, []plan.Absent{leaving, {Namespace: "zone"}},
		},
		"system namespaces are named": {[]string{"kube-system"}, true, []string{"kube-system", "selected"}, []plan.Absent{leaving}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newScope("s", tc.named...)
			if tc.selected {
				s.Members.Selector = labels.SelectorFromSet(team)
			}

			p := plan.New([]scope.Scope{s}, f)
			if got := p.Scopes[0]; !slices.Equal(got.Members, tc.members) || !slices.Equal(got.Absent, tc.absent) {
				t.Errorf("got members %q and absent %+v, want %q and %+v", got.Members, got.Absent, tc.members, tc.absent)
			}
		})
	}
}
