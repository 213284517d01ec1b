package apply

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// quiet is a recorder of a cluster in which nobody else changes permissions.
type quiet struct{}

func (quiet) Wrote(client.Object)                            {}
func (quiet) Deleted(string, facts.ProjectedKey)             {}
func (quiet) DeletedConfigMap(string, string)                {}
func (quiet) PermissionsChangedAt(_, _ string) (_ time.Time) { return }

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

// TestLateGrantCounts: while nobody waits for a permission any more, it may be there already, and once it is, or may be, it was
// granted just now: what it replaces stays until the API server's authorizer knows of it.
func TestLateGrantCounts(t *testing.T) {
	t.Parallel()

	key := scope.NamespaceScopes.In("ops")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "copy", errRefused)

	for name, tc := range map[string]struct {
		action plan.Action
		err    error
		late   bool
		// is says that it is being granted while it is under way, and was that it was once the answer came.
		is, was bool
	}{
		"created":          {plan.Create, nil, true, true, true},
		"updated":          {plan.Update, nil, true, true, true},
		"perhaps created":  {plan.Create, context.Canceled, true, true, true},
		"refused":          {plan.Create, refused, true, true, false},
		"deleted":          {plan.Delete, nil, true, false, false},
		"answered in time": {plan.Create, refused, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			late, answer := make(chan scope.Key, 1), make(chan struct{})
			applier := Simulated(nil, quiet{})
			applier.Late = func(key scope.Key) { late <- key }
			r := &run{plan: &plan.Plan{Key: key}, Applier: applier}
			c := plan.Change{Action: tc.action, Namespace: "a", Key: facts.ProjectedKey{Kind: projected.Role, Name: "copy"}}

			if !tc.late {
				close(answer)
			}

			_, err := r.await(t.Context(), r.memberWrite(Identity{}, &c), LateWrite{}, ErrUnanswered,
				func(context.Context) (Result, error) {
					<-answer

					return Created, tc.err
				})
			if errors.Is(err, ErrUnanswered) != tc.late {
				t.Fatalf("got %v", err)
			}

			if _, is := applier.Granting(key)["a"]; is != tc.is || !applier.Granted(key).IsZero() {
				t.Errorf("under way, it is being granted: %t; granted %v", is, applier.Granted(key))
			}

			if !tc.late {
				return
			}

			close(answer)
			<-late

			if len(applier.Granting(key)) > 0 || applier.Granted(key).IsZero() == tc.was {
				t.Errorf("after that, it is being granted in %v; granted %v", applier.Granting(key), applier.Granted(key))
			}
		})
	}
}
