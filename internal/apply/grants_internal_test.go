package apply

import (
	"maps"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// quiet is a recorder of a cluster in which nobody else changes permissions.
type quiet struct{}

func (quiet) Wrote(client.Object)                       {}
func (quiet) Deleted(string, facts.ProjectedKey)        {}
func (quiet) DeletedConfigMap(string, string)           {}
func (quiet) PermissionsChangedAt(string) (_ time.Time) { return }

// TestReviewAfterOwnWrites holds that what an account may do in a namespace is asked again once after Ambit wrote permissions
// there, as soon as the API server's authorizer knows of them: a copy of another scope may be what the account lacked.
func TestReviewAfterOwnWrites(t *testing.T) {
	t.Parallel()

	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := Simulated(nil, quiet{})
	key := reviewed{namespace: "a"}
	old := &review{taken: began}
	a.reviews.known[key] = old

	wrote := began.Add(time.Second)
	a.Now = func() time.Time { return wrote }
	of := scope.NamespaceScopes.In("ops")
	a.noteWritten(of, map[string]struct{}{"a": {}})

	learned := wrote.Add(plan.Propagation)

	for _, tc := range []struct {
		reason string
		lacked bool
		at     time.Time
		want   bool
	}{
		{"the authorizer may not know of the write yet", true, learned.Add(-1), true},
		{"nothing was lacking", false, learned, true},
		{"by now it does", true, learned, false},
	} {
		old.lacked.Store(tc.lacked)

		if got := a.remembered(key, tc.at) != nil; got != tc.want {
			t.Errorf("%s: remembered %v", tc.reason, got)
		}
	}

	again := &review{taken: learned}
	again.lacked.Store(true)
	a.reviews.known[key] = again
	if a.remembered(key, learned.Add(time.Second)) == nil {
		t.Error("one that was taken since then is asked for again")
	}

	if got := a.TakeWritten(of); !maps.Equal(got, map[string]struct{}{"a": {}}) {
		t.Errorf("the plan wrote in %v", got)
	}

	if got := a.TakeWritten(of); len(got) > 0 {
		t.Errorf("no plan wrote since, and not in %v", got)
	}
}
