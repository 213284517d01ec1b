package apply

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var errRefused = errors.New("refused")

// TestLateAnswersAreReportedOnce: a write in the operator namespace that takes long is left to itself and not made twice. Why it
// failed is known to the next plan, and then it is tried again. Once it is not wanted any more, it is withdrawn.
func TestLateAnswersAreReportedOnce(t *testing.T) {
	t.Parallel()

	const what = writesList + "list"

	late := make(chan scope.Key, 1)
	of := func(lists ...plan.ListPlan) *run {
		return &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In("ops"), Lists: lists}, Applier: &Applier{
			breaker: newBreaker(), Late: func(key scope.Key) { late <- key },
		}}
	}
	r, answer, made := of(plan.ListPlan{Name: "list"}), make(chan error), &atomic.Int64{}
	write := func(ctx context.Context) error {
		made.Add(1)

		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	for range 2 {
		if err := r.writeBounded(t.Context(), what, LateWrite{}, write); !errors.Is(err, ErrUnanswered) || made.Load() != 1 {
			t.Fatalf("got %v after %d writes, want one that is not answered", err, made.Load())
		}
	}

	r.withdraw()
	answer <- errRefused

	if key := <-late; key != scope.NamespaceScopes.In("ops") {
		t.Errorf("a plan of %q is asked for", key)
	}

	if err := r.writeBounded(t.Context(), what, LateWrite{}, write); !errors.Is(err, errRefused) || made.Load() != 1 {
		t.Fatalf("got %v after %d writes, want the answer", err, made.Load())
	}

	if err := r.writeBounded(t.Context(), what, LateWrite{}, write); !errors.Is(err, ErrUnanswered) || made.Load() != 2 {
		t.Fatalf("got %v after %d writes, want that it is tried again", err, made.Load())
	}

	without := of()
	without.Applier = r.Applier
	without.withdraw()

	select {
	case <-late:
	default:
		t.Error("what is not wanted any more is still under way")
	}
}

// TestMemberWaitsForWhatIsTakenAway: a namespace left, its Role is being deleted, and before the API server answers, it is a
// member again. The Role is still known then, so that nothing is written for the member. The deletion may happen although it is
// cancelled: the member does not enter a list before it has ended and the next plan knows what is left.
func TestMemberWaitsForWhatIsTakenAway(t *testing.T) {
	t.Parallel()

	late := make(chan scope.Key, 2)
	applier := Simulated(nil, quiet{})
	applier.Late = func(key scope.Key) { late <- key }
	key, id := scope.NamespaceScopes.In("ops"), plan.Member{Scope: 0, Namespace: "a"}
	planned := func(s plan.ScopePlan) *run {
		return &run{
			plan: &plan.Plan{Key: key, Scopes: []plan.ScopePlan{s}}, Applier: applier, identities: make([]Identity, 1),
			unserved: plan.Members{},
		}
	}
	deletion := plan.Change{
		Action: plan.Delete, Namespace: "a", Key: facts.ProjectedKey{Kind: projected.Role, Name: "op-role"},
	}
	without, answer, cancelled := planned(plan.ScopePlan{Prune: []plan.Change{deletion}}), make(chan error), &atomic.Bool{}

	_, err := without.await(t.Context(), without.memberWrite(without.identities[0], &deletion), LateWrite{}, ErrUnanswered,
		func(ctx context.Context) (Result, error) {
			select {
			case err := <-answer:
				return Deleted, err
			case <-ctx.Done():
				cancelled.Store(true)

				return Failed, ctx.Err()
			}
		})
	if !errors.Is(err, ErrUnanswered) {
		t.Fatalf("got %v, want that it is not answered", err)
	}

	for _, tc := range []struct {
		reason   string
		run      *run
		ends, is bool
		again    int
	}{
		{"the namespace is still no member", planned(plan.ScopePlan{Prune: []plan.Change{deletion}}), false, false, 0},
		{"it is one while the deletion is under way", planned(plan.ScopePlan{Members: []string{"a", "b"}}), false, true, 0},
		{"the deletion has ended, perhaps after the facts were taken", planned(plan.ScopePlan{Members: []string{"a"}}), true, true, 1},
		{"the next plan knows of it", planned(plan.ScopePlan{Members: []string{"a"}}), false, false, 0},
	} {
		if tc.ends {
			answer <- nil
			<-late
		}

		tc.run.withdraw()

		if _, is := tc.run.unserved[id]; is != tc.is || len(tc.run.unserved) > 1 || len(late) != tc.again {
			t.Errorf("%s: kept out of lists %v, and %d plans are asked for", tc.reason, tc.run.unserved, len(late))
		}

		for len(late) > 0 {
			<-late
		}
	}

	if cancelled.Load() {
		t.Error("the deletion was cancelled")
	}

	if got := applier.TakeWritten(key); !maps.Equal(got, map[string]struct{}{"a": {}}) {
		t.Errorf("got %v as the namespaces in which it was written, want that of the deletion", got)
	}
}

// TestWhatIsMadeOnceIsNotMadeAgain: a plan from before a detached restart ended does not restart the reader once more, and
// one from before a detached copy was created does not create it under another name. Nor does the next one, which may be
// from before that, too; one after that does, if it wants to.
func TestWhatIsMadeOnceIsNotMadeAgain(t *testing.T) {
	t.Parallel()

	for name, of := range map[string]func(*run) writeKey{
		"a restart": func(r *run) writeKey { return r.operatorNamespaceWrite(restartsReader + "Deployment op") },
		"a copy": func(r *run) writeKey {
			c := r.plan.Scopes[0].Grant[0]
			c.Key.Name = "a name that no other plan gives"

			return r.memberWrite(Identity{}, &c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			late := make(chan scope.Key, 2)
			applier := Simulated(nil, quiet{})
			applier.Late = func(key scope.Key) { late <- key }
			planned := func() *run {
				return &run{
					plan: &plan.Plan{
						Key:      scope.NamespaceScopes.In("ops"),
						Restarts: []plan.Restart{{Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "op"}}},
						Scopes: []plan.ScopePlan{{Grant: []plan.Change{{
							Action: plan.Create, Namespace: "a", Key: facts.ProjectedKey{Kind: projected.Role},
							Copy: &plan.Copy{Object: projected.Object{Kind: projected.Role, Slot: "op-role"}},
						}}}},
					},
					Applier: applier, identities: make([]Identity, 1), unserved: plan.Members{},
				}
			}
			answer, made := make(chan struct{}), 0
			writes := func(r *run) error {
				_, err := r.await(t.Context(), of(r), LateWrite{}, ErrUnanswered, func(context.Context) (Result, error) {
					made++
					<-answer

					return Created, nil
				})

				return err
			}

			if err := writes(planned()); !errors.Is(err, ErrUnanswered) {
				t.Fatalf("got %v, want that it is not answered", err)
			}

			early := planned()
			early.withdraw()
			close(answer)
			<-late

			if err := writes(early); !errors.Is(err, ErrUnanswered) || made != 1 || len(late) != 0 {
				t.Errorf("a plan from before that: got %v after %d writes, and %d further plans", err, made, len(late))
			}

			next := planned()
			next.withdraw()

			if err := writes(next); !errors.Is(err, ErrUnanswered) || made != 1 || len(late) != 1 {
				t.Errorf("the next plan: got %v after %d writes, and %d further plans", err, made, len(late))
			}

			last := planned()
			last.withdraw()

			if err := writes(last); err != nil || made != 2 {
				t.Errorf("the one after that: got %v after %d writes", err, made)
			}
		})
	}
}

// TestWhatIsMadeLateIsTold: nobody waits for a restart any more when its answer comes. The next plan does not want it, since the
// cluster shows it, and its outcome tells of it, once. A plan that knows of it before the answer comes does not cut it off. What
// fails, or does not come, is not told.
func TestWhatIsMadeLateIsTold(t *testing.T) {
	t.Parallel()

	key := scope.NamespaceScopes.In("ops")
	restart := plan.Restart{Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "op"}, Scopes: []int{0}}

	for name, tc := range map[string]struct {
		made LateWrite
		// planned is when the next plan is applied, and answers when the API server does; both since the write began.
		planned, answers time.Duration
		err              error
		want             int
	}{
		"Restart":         {LateWrite{Restart: &restart}, 3 * memberWait, 2 * memberWait, nil, 1},
		"Injection":       {LateWrite{Target: "Deployment op"}, 3 * memberWait, 2 * memberWait, nil, 1},
		"AnsweredInTime":  {LateWrite{Restart: &restart}, 3 * memberWait, memberWait / 2, nil, 0},
		"SeenBefore":      {LateWrite{Restart: &restart}, 2 * memberWait, 2*memberWait + memberWait/2, nil, 1},
		"Refused":         {LateWrite{Restart: &restart}, 3 * memberWait, 2 * memberWait, errRefused, 0},
		"NotWantedAtAll":  {LateWrite{Restart: &restart}, 2 * memberWait, 9 * memberWait, nil, 0},
		"NothingToBeTold": {LateWrite{}, 3 * memberWait, 2 * memberWait, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := Simulated(nil, quiet{})
				a.Late = func(scope.Key) {}
				r, began := &run{plan: &plan.Plan{Key: key}, Applier: a}, time.Now()

				_ = r.writeBounded(t.Context(), restartsReader+"Deployment op", tc.made, func(ctx context.Context) error {
					select {
					case <-time.After(tc.answers):
						return tc.err
					case <-ctx.Done():
						return ctx.Err()
					}
				})

				time.Sleep(tc.planned - time.Since(began))

				for _, want := range []int{tc.want, 0} {
					out := a.ApplyWith(t.Context(), &plan.Plan{Key: key}, nil, Identity{})
					if len(out.Late) != want {
						t.Errorf("got %+v, want %d", out.Late, want)
					}
				}
			})
		})
	}
}

// TestTimeInWhichAWriteIsHeldBackDoesNotCount: a write that waits for its turn, since the API server has no room, is not cut
// off however long that takes. One that is asked for and not answered is, once its own time is over.
func TestTimeInWhichAWriteIsHeldBackDoesNotCount(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		asked  time.Duration
		want   error
	}{
		"HeldBack":    {"it was asked for, for less than it may take", writeLimit - time.Second, nil},
		"HeldAndHung": {"it was asked for, for longer than it may take", writeLimit + time.Second, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				r := &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In("ops")}, Applier: &Applier{
					breaker: newBreaker(), Late: func(scope.Key) {},
				}}

				_ = r.writeBounded(t.Context(), writesList+"list", LateWrite{}, func(ctx context.Context) error {
					held := heldBackOf(ctx)
					held.begin()
					time.Sleep(2 * writeLimit)
					held.end()

					inner, cancel := context.WithCancel(ctx) // As clients do.
					defer cancel()

					select {
					case <-inner.Done():
					case <-time.After(tc.asked):
					}

					ended <- inner.Err()

					return inner.Err()
				})

				if err := <-ended; !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v: %s", err, tc.want, tc.reason)
				}

				synctest.Wait()
			})
		})
	}
}

// TestWhatThePlanWantsIsNotCancelled: every kind of change in members is known as wanted, so that one whose answer takes long is
// not cancelled by each plan and begun anew.
func TestWhatThePlanWantsIsNotCancelled(t *testing.T) {
	t.Parallel()

	change := plan.Change{Action: plan.Hold, Namespace: "a", Key: facts.ProjectedKey{Kind: projected.Role, Name: "op-role"}}
	kinds := 0

	for i := range reflect.TypeFor[plan.ScopePlan]().NumField() {
		var s plan.ScopePlan

		name, field := reflect.TypeFor[plan.ScopePlan]().Field(i).Name, reflect.ValueOf(&s).Elem().Field(i)
		if field.Type() != reflect.TypeFor[[]plan.Change]() || name == "Held" || name == "Replaced" { // For a later plan.
			continue
		}

		kinds++

		field.Set(reflect.ValueOf([]plan.Change{change}))

		r := &run{
			plan: &plan.Plan{Key: scope.NamespaceScopes.In("ops"), Scopes: []plan.ScopePlan{s}}, Applier: &Applier{},
			identities: make([]Identity, 1),
		}
		if _, is := r.wanted()[r.memberWrite(r.identities[0], &change)]; !is {
			t.Errorf("what the plan has in %s is cancelled", name)
		}
	}

	if kinds < 6 {
		t.Errorf("only %d fields hold changes", kinds)
	}
}
