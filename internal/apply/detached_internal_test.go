package apply

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
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
