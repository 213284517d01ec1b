package apply

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-k8s/ambit/internal/plan"
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
			breaker: newBreaker(time.Now), Late: func(key scope.Key) { late <- key },
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
		if err := r.writeBounded(t.Context(), what, write); !IsUnanswered(err) || made.Load() != 1 {
			t.Fatalf("got %v after %d writes, want one that is not answered", err, made.Load())
		}
	}

	r.withdraw()
	answer <- errRefused

	if key := <-late; key != scope.NamespaceScopes.In("ops") {
		t.Errorf("a plan of %q is asked for", key)
	}

	if err := r.writeBounded(t.Context(), what, write); !errors.Is(err, errRefused) || made.Load() != 1 {
		t.Fatalf("got %v after %d writes, want the answer", err, made.Load())
	}

	if err := r.writeBounded(t.Context(), what, write); !IsUnanswered(err) || made.Load() != 2 {
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
					breaker: newBreaker(time.Now), Late: func(scope.Key) {},
				}}

				_ = r.writeBounded(t.Context(), writesList+"list", func(ctx context.Context) error {
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
