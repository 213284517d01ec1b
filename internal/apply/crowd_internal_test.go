package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// hanging is a write to which the API server never answers.
func hanging(ctx context.Context) error {
	<-ctx.Done()

	return ctx.Err()
}

// TestManyWritesThatHangHoldUpNothing: an admission webhook that never answers is asked about hundreds of lists, workloads and
// readers of one operator namespace. A plan there ends soon, also one that makes many of them at once, and a member of another
// operator namespace in which a write hangs is waited for as briefly as ever.
func TestManyWritesThatHangHoldUpNothing(t *testing.T) {
	t.Parallel()

	const many = 600

	for name, parallel := range map[string]int{"one after the other": 1, "many at once": 64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				applier := newApplier(nil, quiet{}, parallel)
				applier.Late = func(scope.Key) {}
				here := &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In("evil")}, Applier: applier}
				began := time.Now()

				for _, what := range []string{writesList, injectsInto, restartsReader} {
					here.each(t.Context(), many, func(i int) {
						err := here.writeBounded(t.Context(), what+fmt.Sprint("x", i), LateWrite{}, hanging)
						if !errors.Is(err, ErrUnanswered) {
							t.Errorf("got %v", err)
						}
					})
				}

				if took := time.Since(began); took > 10*memberWait {
					t.Errorf("the plan took %v", took)
				}

				began = time.Now()
				other := &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In("home")}, Applier: applier}
				change := plan.Change{Action: plan.Delete, Namespace: "a"}

				_, err := other.await(t.Context(), other.memberWrite(Identity{}, &change), LateWrite{}, ErrUnanswered,
					func(ctx context.Context) (Result, error) { return Failed, hanging(ctx) })
				if took := time.Since(began); !errors.Is(err, ErrUnanswered) || took > memberWait {
					t.Errorf("another one waited %v: %v", took, err)
				}

				time.Sleep(2 * writeLimit)
			})
		})
	}
}

// TestMembersThatHangLeaveRoomForOthers: an admission webhook that never answers is asked about hundreds of copies, in one member
// and in a few. A plan for them ends soon, what is answered there is done, and a write that hangs in somebody else's member is
// waited for as briefly as ever.
func TestMembersThatHangLeaveRoomForOthers(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ members, each int }{"one member": {1, 600}, "a few members": {6, 100}} {
		for _, action := range []plan.Action{plan.Create, plan.Delete} {
			t.Run(fmt.Sprint(name, ", ", action), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					applier := newApplier(nil, quiet{}, 64)
					applier.Late = func(scope.Key) {}
					hangs := func(ctx context.Context) (Result, error) { return Failed, hanging(ctx) }
					write := func(key, member, name string, answer func(context.Context) (Result, error)) (time.Duration, error) {
						r := &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In(key)}, Applier: applier}
						change := plan.Change{
							Action: action, Namespace: member, Key: facts.ProjectedKey{Kind: projected.Role, Name: name},
						}
						began := time.Now()
						_, err := r.await(t.Context(), r.memberWrite(Identity{}, &change), LateWrite{}, ErrUnanswered, answer)

						return time.Since(began), err
					}
					began := time.Now()

					(&run{Applier: applier}).each(t.Context(), tc.members*tc.each, func(i int) {
						if _, err := write("ops", fmt.Sprint("m", i/tc.each), strconv.Itoa(i), hangs); !errors.Is(err, ErrUnanswered) {
							t.Errorf("got %v", err)
						}
					})

					if took := time.Since(began); took > 10*memberWait {
						t.Errorf("the plan took %v", took)
					}

					done := func(context.Context) (Result, error) { return Deleted, nil }
					if took, err := write("ops", "m0", "answered", done); err != nil || took > 0 {
						t.Errorf("what is answered in the member took %v: %v", took, err)
					}

					if took, err := write("home", "other", "hangs", hangs); !errors.Is(err, ErrUnanswered) || took > memberWait {
						t.Errorf("another one waited %v: %v", took, err)
					}

					time.Sleep(2 * writeLimit)
				})
			})
		}
	}
}

// TestOneOperatorNamespaceLeavesRoomForOthers: more members of one operator namespace hang than together would fill all the
// writes for which nobody waits, and so do those of a few further ones. Its plan ends soon, a write that is slow in somebody
// else's member is waited for as briefly as ever, and one in somebody else's operator namespace is not cancelled.
func TestOneOperatorNamespaceLeavesRoomForOthers(t *testing.T) {
	t.Parallel()

	for _, namespaces := range []int{1, 10} {
		t.Run(strconv.Itoa(namespaces), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const members, each = 48, 24

				applier := newApplier(nil, quiet{}, 64)
				applier.Late = func(scope.Key) {}
				of := func(namespace string) *run {
					return &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In(namespace)}, Applier: applier}
				}
				takes := func(r *run, member string, i int, answer func(context.Context) error) error {
					change := plan.Change{
						Action: plan.Delete, Namespace: member, Key: facts.ProjectedKey{Kind: projected.Role, Name: strconv.Itoa(i)},
					}
					_, err := r.await(t.Context(), r.memberWrite(Identity{}, &change), LateWrite{}, ErrUnanswered,
						func(ctx context.Context) (Result, error) { return Deleted, answer(ctx) })

					return err
				}

				for n := range namespaces {
					evil, began := of(fmt.Sprint("evil-", n)), time.Now()

					evil.each(t.Context(), members*each, func(i int) {
						if err := takes(evil, fmt.Sprint("m-", n, "-", i%members), i, hanging); !errors.Is(err, ErrUnanswered) {
							t.Errorf("got %v", err)
						}
					})

					if took := time.Since(began); took > 20*memberWait {
						t.Errorf("the plan took %v", took)
					}
				}

				began, ended := time.Now(), &atomic.Int64{}
				slow := func(ctx context.Context) error {
					select {
					case <-time.After(5 * memberWait):
						ended.Store(int64(time.Since(began)))

						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}

				if err := takes(of("home"), "other", 0, slow); !errors.Is(err, ErrUnanswered) || time.Since(began) > memberWait {
					t.Errorf("another member waited %v: %v", time.Since(began), err)
				}

				_ = of("home").writeBounded(t.Context(), writesList+"list", LateWrite{}, slow)

				if took := time.Since(began); took > 2*memberWait {
					t.Errorf("another list waited %v", took)
				}

				time.Sleep(2 * writeLimit)

				if time.Duration(ended.Load()) != 6*memberWait {
					t.Error("what is slow elsewhere was cancelled")
				}
			})
		})
	}
}

// TestInstallsThatHangAreNotWaitedFor: a reconcile that installs much of which nothing is answered ends soon, and what is
// answered is made. The plan of the next one, which knows nothing of installs, cancels none of those that go on; one that is
// refused late is told of once.
func TestInstallsThatHangAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := &atomic.Int64{}
		a, key := Simulated(nil, quiet{}), scope.Installs.In("ops")
		a.Late = func(scope.Key) { late.Add(1) }

		refused := func(context.Context) error {
			time.Sleep(10 * memberWait)

			return errRefused
		}
		if err := a.Bounded(t.Context(), key, "first", refused); !errors.Is(err, ErrUnanswered) {
			t.Errorf("what takes long: got %v", err)
		}

		began := time.Now()

		for i := range 5 * maxHere {
			if err := a.Bounded(t.Context(), key, strconv.Itoa(i), hanging); !errors.Is(err, ErrUnanswered) {
				t.Errorf("what hangs: got %v", err)
			}
		}

		if took := time.Since(began); took > 5*maxHere*shortWait {
			t.Errorf("it took %v", took)
		}

		if err := a.Bounded(t.Context(), key, "answered", func(context.Context) error { return nil }); err != nil {
			t.Errorf("what is answered: got %v", err)
		}

		time.Sleep(memberWait / 2)
		a.ApplyWith(t.Context(), &plan.Plan{Key: key}, nil, Identity{})

		if n := late.Load(); n != 0 {
			t.Errorf("%d were cancelled", n)
		}

		time.Sleep(5 * memberWait)

		if err := a.Bounded(t.Context(), key, "first", refused); !errors.Is(err, errRefused) || late.Load() != 1 {
			t.Errorf("what was refused late, of %d: got %v", late.Load(), err)
		}

		time.Sleep(2 * writeLimit)

		if n := late.Load(); n != maxHere {
			t.Errorf("%d reconciles are asked for, want %d", n, maxHere)
		}
	})
}

// slowLists is an API server that does not say in time whether somebody may write a list.
type slowLists struct{ refusing }

func (*slowLists) Patch(ctx context.Context, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return hanging(ctx)
}

// TestSharedListsThatHangAreAskedAboutOnce: many lists are shared by scopes of two accounts, and nobody says in time which may
// write them. A plan, and with it whatever is to be revoked, does not wait for each of them.
func TestSharedListsThatHangAreAskedAboutOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &slowLists{}
		a := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 1)

		var scopes []scope.Scope

		for i := range 100 {
			for _, account := range []string{"one", "two"} {
				scopes = append(scopes, scope.Scope{
					Owner: scope.Owner{Name: fmt.Sprint(account, "-", i)}, WatchList: fmt.Sprint("list-", i),
				})
			}
		}

		began := time.Now()
		barred := a.Bar(t.Context(), "ops", scopes, func(s *scope.Scope) Identity {
			account, _, _ := strings.Cut(s.Owner.Name, "-")

			return writer.ServiceAccount("ops", account)
		})

		if took := time.Since(began); took > 2*longTime {
			t.Errorf("it took %v", took)
		}

		for i := range scopes {
			if why := barred[scopes[i].Owner]; !scopes[i].Barred || Classify(why) != Transient {
				t.Errorf("%s is barred %t: %v", scopes[i].Owner.Name, scopes[i].Barred, why)
			}
		}
	})
}
