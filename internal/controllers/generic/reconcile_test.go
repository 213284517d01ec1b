package generic

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// member is a namespace that matters to the key.
const member = "a"

func key() scope.Key { return scope.NamespaceScopes.In("ops") }

var errFailed = errors.New("failed")

// steps is a State that notes which of its methods were called.
type steps struct {
	called []string

	cleared  bool
	wait     time.Duration
	watching func() error
	facts    *facts.Facts
	due      time.Time
	again    reconcile.Result
	failed   error
}

func (s *steps) Clear(context.Context, time.Time) (done bool, again reconcile.Result, err error) {
	s.called = append(s.called, "clear")

	return s.cleared, s.again, nil
}

func (s *steps) Wait() time.Duration {
	s.called = append(s.called, "wait")

	return s.wait
}

func (s *steps) Compile() []scope.Scope {
	s.called = append(s.called, "compile")

	return []scope.Scope{{Members: scope.Members{Named: []string{member}}}}
}

func (s *steps) Watch([]scope.Scope) error {
	s.called = append(s.called, "watch")

	if s.watching == nil {
		return nil
	}

	return s.watching()
}

func (s *steps) Plan(_ context.Context, f *facts.Facts, _ []scope.Scope) *plan.Plan {
	s.called, s.facts = append(s.called, "plan"), f

	return &plan.Plan{Key: key(), Again: s.due}
}

func (s *steps) ApplyPlan(_ context.Context, p *plan.Plan) (*plan.Plan, *apply.Outcome) {
	s.called = append(s.called, "apply")

	return p, &apply.Outcome{}
}

func (s *steps) Refused(*apply.Outcome) map[string]struct{} {
	s.called = append(s.called, "refused")

	return map[string]struct{}{member: {}}
}

func (s *steps) Report(context.Context, *plan.Plan, *apply.Outcome) (reconcile.Result, error) {
	s.called = append(s.called, "report")

	return s.again, s.failed
}

// queue notes for when it was asked for a plan.
type queue struct {
	changes.Queue

	waits []time.Duration
}

func (*queue) Forget(scope.Key) {}

func (q *queue) AddAfter(_ scope.Key, wait time.Duration) { q.waits = append(q.waits, wait) }

// newShared is of a store in which the key is listed, or not.
func newShared(listed bool) (*Shared, *queue) {
	heard, asked := changes.New(), &queue{}
	heard.Start(scope.NamespaceScopes, asked)

	store := read.NewStore(heard)
	if listed {
		store = read.NewOnce([]string{key().Namespace}).Store
	}

	return &Shared{
		Store: store, Applier: apply.Simulated(nil, store), Metrics: report.NewMetrics(prometheus.NewRegistry()), Changes: heard,
		AmbitNamespace: "ambit-system",
	}, asked
}

func TestReconcileEndsWhereThereIsNothingMoreToDo(t *testing.T) {
	t.Parallel()

	all := []string{"clear", "wait", "compile", "watch", "plan", "apply", "refused", "report"}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "namespacescopes"}, "scope", errFailed)

	for _, tc := range []struct {
		reason   string
		reading  error
		unlisted bool
		state    steps
		called   []string
		want     reconcile.Result
		err      error
	}{
		{
			reason: "what was read goes all the way, and the report says when to come again",
			state:  steps{again: reconcile.Result{RequeueAfter: time.Hour}},
			called: all, want: reconcile.Result{RequeueAfter: time.Hour},
		},
		{
			reason: "a report that fails is an error", state: steps{failed: errFailed}, called: all, err: errFailed,
		},
		{
			reason: "who was faster comes first, without an error in the log", reading: conflict,
			want: reconcile.Result{Requeue: true}, //nolint:staticcheck // That is what is returned.
		},
		{
			reason: "what cannot be read is not planned for", reading: errFailed, err: errFailed,
		},
		{
			reason: "where nothing is asked for, what is left is cleared and nothing is watched",
			state:  steps{cleared: true, again: reconcile.Result{RequeueAfter: time.Second}},
			called: all[:1], want: reconcile.Result{RequeueAfter: time.Second},
		},
		{
			reason: "nothing is planned from what is older than Ambit's own writes", state: steps{wait: time.Second},
			called: all[:2], want: reconcile.Result{RequeueAfter: time.Second},
		},
		{
			reason: "without its watches the facts would not be complete",
			state:  steps{watching: func() error { return errFailed }}, called: all[:4], err: errFailed,
		},
		{
			reason: "nothing is planned before everything is listed", unlisted: true, called: all[:4],
		},
	} {
		with, _ := newShared(!tc.unlisted)

		got, err := Reconcile(t.Context(), key(), with, func(context.Context, scope.Key) (*steps, error) {
			return &tc.state, tc.reading
		})

		if got != tc.want || !errors.Is(err, tc.err) || !slices.Equal(tc.state.called, tc.called) {
			t.Errorf("%s:\n got %v, %v after %v\nwant %v, %v after %v", tc.reason, got, err, tc.state.called, tc.want, tc.err, tc.called)
		}
	}
}

// TestReconcileMissesNoChange: whatever changes once the facts are taken asks for a plan, and so does what was refused.
func TestReconcileMissesNoChange(t *testing.T) {
	t.Parallel()

	with, asked := newShared(true)
	s := &steps{failed: errFailed, due: time.Now().Add(time.Hour), watching: func() error {
		if len(asked.waits) > 0 {
			t.Errorf("a plan was asked for before anything changed")
		}

		with.Changes.NamespaceChanged(member, nil, &facts.Namespace{})

		if len(asked.waits) != 1 {
			t.Errorf("a change before the facts were taken asked for %d plans", len(asked.waits))
		}

		return nil
	}}

	read := func(context.Context, scope.Key) (*steps, error) { return s, nil }
	if _, err := Reconcile(t.Context(), key(), with, read); err == nil {
		t.Error("the report failed, and nobody says so")
	}

	if s.facts.AmbitNamespace != with.AmbitNamespace {
		t.Errorf("the facts say that Ambit runs in %q", s.facts.AmbitNamespace)
	}

	if len(asked.waits) != 2 || asked.waits[1] < time.Minute {
		t.Errorf("what is due in an hour is not asked for where the report fails: %v", asked.waits)
	}

	if with.Changes.PermissionsChanged(member); len(asked.waits) != 3 {
		t.Error("new permissions where something was refused ask for no plan")
	}
}
