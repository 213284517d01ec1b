package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// TestHangingEnds: a namespace is left alone for as long as what hung there is worth, and what hangs elsewhere is no concern of
// it.
func TestHangingEnds(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var (
			h      = newBreaker()
			create = &plan.Change{Action: plan.Create, Namespace: "m"}
			failed = fmt.Errorf("create: %w", errors.New("it hangs"))
			try    = func(c *plan.Change, took time.Duration, err error) {
				began := time.Now()
				time.Sleep(took)
				h.note(c, began, err)
			}
		)

		try(create, longTime-1, failed)

		if err := h.of(create); err != nil {
			t.Errorf("what fails soon is tried again: %v", err)
		}

		try(create, longTime, failed)

		for name, c := range map[string]*plan.Change{
			"another namespace": {Action: plan.Create, Namespace: "n"},
			"an update":         {Action: plan.Update, Namespace: "m"},
			"a deletion":        {Action: plan.Delete, Namespace: "m"},
			"the whole cluster": {Action: plan.Create},
		} {
			if err := h.of(c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}

		time.Sleep(backOff*longTime - 1)

		if h.of(create) == nil {
			t.Error("it is tried again too soon")
		}

		time.Sleep(2 * time.Nanosecond)

		if err := h.of(create); err != nil {
			t.Errorf("it is tried again: %v", err)
		}

		try(create, longTime, failed)
		try(create, longTime, nil)

		if err := h.of(create); err != nil {
			t.Errorf("what takes long and succeeds does not hang: %v", err)
		}
	})
}

// TestSilentServerIsNoFaultOfANamespace: a namespace in which nothing was answered is left alone for a while, not because of an
// API server that answered nothing at all.
func TestSilentServerIsNoFaultOfANamespace(t *testing.T) {
	t.Parallel()

	unanswered := fmt.Errorf("posting: %w", context.DeadlineExceeded)

	for name, tc := range map[string]struct {
		err     error
		took    time.Duration
		answers time.Duration
		alone   bool
	}{
		"the namespace hangs":         {unanswered, writeLimit, 0, true},
		"the server is silent":        {unanswered, writeLimit, time.Hour, false},
		"a webhook took long":         {apierrors.NewInternalError(errRefused), longTime, time.Hour, true},
		"a webhook took a moment":     {apierrors.NewInternalError(errRefused), longTime - 1, 0, false},
		"it is not wanted any more":   {fmt.Errorf("posting: %w", context.Canceled), writeLimit, 0, false},
		"and the server is silent so": {fmt.Errorf("posting: %w", context.Canceled), writeLimit, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				own := &answering{after: tc.answers}
				r := &run{plan: &plan.Plan{Key: scope.NamespaceScopes.In("ops")}, Applier: newApplier(
					func(id Identity) (client.Client, error) {
						if id.IsOwn() {
							return own, nil
						}

						return &failing{took: tc.took, err: tc.err}, nil
					}, quiet{}, 1)}
				create := &plan.Change{
					Action: plan.Create, Namespace: "m", Key: facts.ProjectedKey{Kind: projected.Role, Name: "op"}, Copy: &plan.Copy{},
				}

				ctx, cancel := context.WithTimeout(t.Context(), writeLimit)
				defer cancel()

				if _, err := r.timed(ctx, writer.ServiceAccount("ops", "writer"), create, doubt{}); !errors.Is(err, tc.err) {
					t.Fatalf("got %v", err)
				}

				if alone := r.breaker.of(create) != nil; alone != tc.alone {
					t.Errorf("left alone: %t, want %t", alone, tc.alone)
				}
			})
		})
	}
}

// failing is a client of an API server that makes nothing, after a time.
type failing struct {
	client.Client

	took time.Duration
	err  error
}

// Create fails.
func (f *failing) Create(context.Context, client.Object, ...client.CreateOption) error {
	time.Sleep(f.took)

	return f.err
}

// TestSilentNamespaceIsNotAskedAgain: what a review does not cover is tried by a dry run for each change, in each plan, and plans
// wait for that. After the first dry run in a namespace that is not answered, none is made there for a while, whatever is to be
// tried; what was answered before is remembered.
func TestSilentNamespaceIsNotAskedAgain(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var (
			h, r, asked = newBreaker(), &review{}, 0
			forbidden   = apierrors.NewForbidden(schema.GroupResource{}, "", errors.ErrUnsupported)
			refused     = func(namespace, what string, took time.Duration, err error) bool {
				is, _ := r.isRefused(what, func() error {
					return h.dryRun(namespace, func() error {
						asked++

						time.Sleep(took)

						return err
					})
				})

				return is
			}
		)

		if !refused("m", "a", 0, forbidden) || refused("m", "b", memberWait-1, errors.ErrUnsupported) || asked != 2 {
			t.Fatalf("what is answered: asked %d times", asked)
		}

		began := time.Now()

		for i := range 100 {
			if refused("m", fmt.Sprint("hangs", i), memberWait, context.DeadlineExceeded) {
				t.Fatal("what is not answered counts as refused")
			}
		}

		if took := time.Since(began); asked != 3 || took != memberWait {
			t.Errorf("what hangs: asked %d times, within %s", asked, took)
		}

		if !refused("m", "a", 0, nil) {
			t.Error("what was answered is forgotten")
		}

		if refused("n", "c", 0, nil); asked != 4 {
			t.Error("another namespace is not asked")
		}

		time.Sleep(writeLimit + 1)

		if !refused("m", "d", 0, forbidden) {
			t.Error("it is never asked again")
		}
	})
}
