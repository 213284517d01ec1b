package reconcile_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// faults says with how many faults each life is lived, and faultSeed which these are.
var (
	faults    = flag.Int("faults", 3, "how many faults each life is lived with")
	faultSeed = flag.Uint64("fault-seed", 1, "the seed of the faults")
)

// fault is what goes wrong: requests from one on are not answered as they should be, some in a row.
type fault struct {
	from, requests int
	// status is how they are answered; lost says that they are carried out even so, as far as they write.
	status int
	lost   bool
	// writes says that only requests that write are concerned.
	writes bool
}

func (f fault) String() string {
	return fmt.Sprintf("requests %d to %d are answered with %d (carried out: %t, writes only: %t)",
		f.from, f.from+f.requests-1, f.status, f.lost, f.writes)
}

// drawn is a fault of a life that takes so many requests.
func drawn(r *rand.Rand, requests int) fault {
	f := fault{
		from: r.IntN(requests), requests: 1 + r.IntN(4), lost: r.IntN(3) == 0, writes: true,
		status: []int{http.StatusConflict, http.StatusInternalServerError, http.StatusForbidden}[r.IntN(3)],
	}
	if r.IntN(6) == 0 {
		f.requests = 20 // An outage.
	}

	if f.lost {
		f.status = http.StatusInternalServerError
	}

	if f.status == http.StatusInternalServerError && !f.lost {
		f.writes = r.IntN(2) == 0
	}

	return f
}

// lived is how a life ended, and what it took.
type lived struct {
	requests []string
	pictures [][]string
}

// mostCalls may follow one another after the last fault until nobody asks for another one: what is refused for good is tried
// again and again. mostLooks of them do nothing but look whether something has changed.
const mostCalls, mostLooks = 20, 5

// rests calls the reconcilers as long as a running manager would: after a failure, when something was written, when a call says
// that it comes back soon, and when a change asks for it.
func (w *world) rests(l *life) {
	w.Helper()

	for calls, quiet, looks := 0, 0, 0; calls < mostCalls && quiet < 2 && looks < mostLooks; calls++ {
		done, looked := false, false

		for _, c := range l.calls {
			c.catchUp(w)

			asked := w.asked.takeChange(c.key(w)) || isSoon(w.asked.take(c.key(w)))
			called := w.call(c.reconciler(w), c.key(w))
			w.tripped = called.err != nil

			if w.hit.Swap(false) {
				calls = 0
			}

			// controller-runtime overlooks Requeue where RequeueAfter is given.
			again := called.RequeueAfter == 0 && !called.IsZero()
			done = done || asked || again || called.err != nil || len(called.writes) > 0
			looked = looked || isSoon(called.RequeueAfter) || isSoon(called.again)
		}

		switch {
		case done:
			quiet, looks = 0, 0
		case looked:
			looks++
		default:
			quiet++
		}
	}
}

// isSoon says whether something is to come while somebody watches.
func isSoon(wait time.Duration) bool { return wait > 0 && wait < time.Minute }

// lives through a life, with a fault where there is one.
func (l *life) lived(t *testing.T, f *fault) *lived {
	t.Helper()

	w := l.begin(t)
	out := &lived{}
	refuses := func(what string) bool {
		verb, _, _ := strings.Cut(what, " ")
		i := len(out.requests)

		if verb == "ask" || f != nil && f.writes && verb == "get" {
			return false
		}

		out.requests = append(out.requests, what)
		hit := f != nil && i >= f.from && i < f.from+f.requests
		w.hit.Store(hit || w.hit.Load())

		return hit
	}

	if f != nil && f.lost {
		w.loses = func(what string) bool {
			w.mu.Lock()
			defer w.mu.Unlock()

			return refuses(what)
		}
	} else {
		w.refuses = func(what string) int {
			w.mu.Lock()
			defer w.mu.Unlock()

			if refuses(what) {
				return f.status
			}

			return 0
		}
	}

	for _, step := range l.steps {
		step(w)
		w.rests(l)
		out.pictures = append(out.pictures, w.picture())
	}

	return out
}

// TestAnythingMayFail: whatever the API server refuses or leaves unanswered for a moment, and however quickly one change follows
// another, in the end there is what there would have been otherwise; nothing is missing and nothing is left. A manager comes back
// as long as something is to be done, and no longer.
func TestAnythingMayFail(t *testing.T) {
	t.Parallel()

	for name, l := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var want *lived

			t.Run("without a fault", func(t *testing.T) { want = l.lived(t, nil) })

			r := rand.New(rand.NewPCG(*faultSeed, uint64(len(name))))

			for range *faults {
				f := drawn(r, len(want.requests))

				t.Run(fmt.Sprint(f), func(t *testing.T) {
					got := l.lived(t, &f)

					for i := range want.pictures {
						if diff := differs(got.pictures[i], want.pictures[i]); diff != "" {
							t.Fatalf("%s: after step %d:\n%s\nwhat was asked:\n%s", f, i+1, diff,
								strings.Join(window(got.requests, f), "\n"))
						}
					}
				})
			}

			for i := range *faults {
				if !l.remembers {
					t.Run(fmt.Sprint("in quick succession, ", i), func(t *testing.T) { l.hurries(t, r, want.pictures) })
				}
			}
		})
	}
}

// hurries lives through a life whose steps follow one another after a few calls, or none.
func (l *life) hurries(t *testing.T, r *rand.Rand, want [][]string) {
	t.Helper()

	w := l.begin(t)
	w.refuses = func(string) int { return 0 }

	var happened []string

	for i, step := range l.steps {
		step(w)

		calls := r.IntN(3)
		happened = append(happened, fmt.Sprintf("step %d and %d calls", i+1, calls))

		for range calls {
			for _, c := range l.calls {
				c.catchUp(w)
				w.tripped = w.call(c.reconciler(w), c.key(w)).err != nil
			}
		}

		if i < len(l.steps)-1 && r.IntN(3) > 0 {
			continue
		}

		w.rests(l)

		if diff := differs(withoutWriters(w.picture()), withoutWriters(want[i])); diff != "" {
			t.Fatalf("after %s:\n%s", strings.Join(happened, ", "), diff)
		}
	}
}

// withoutWriters leaves out who wrote what: what was never changed need not be changed back.
func withoutWriters(picture []string) []string {
	out := slices.Clone(picture)
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], `,"writtenBy":`)
	}

	return out
}

// window are the requests around a fault.
func window(requests []string, f fault) []string {
	return slices.Clone(requests[max(0, f.from-3):min(len(requests), f.from+f.requests+6)])
}
