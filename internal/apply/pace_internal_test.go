package apply

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaceIsHalvedAndComesBackSlowly(t *testing.T) {
	t.Parallel()

	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

	for reason, tc := range map[string]struct {
		pace pace
		when time.Time
		want int
	}{
		"nothing was refused yet":             {pace{}, at(0), math.MaxInt},
		"half of those that were under way":   {pace{}.refused(at(0), at(1), 64, time.Second), at(1), 32},
		"one more after a second":             {pace{}.refused(at(0), at(1), 64, time.Second), at(2), 33},
		"all again, in time":                  {pace{}.refused(at(0), at(1), 64, time.Second), at(33), 64},
		"one at least":                        {pace{}.refused(at(0), at(1), 1, 0), at(1), 1},
		"none, if one is too many":            {pace{}.refused(at(0), at(1), 1, 5*time.Second), at(5.9), 0},
		"one, when the time is over":          {pace{}.refused(at(0), at(1), 1, 5*time.Second), at(6), 1},
		"no longer than APF would ever say":   {pace{}.refused(at(0), at(1), 1, time.Hour), at(33), 1},
		"one crowd halves it once":            {pace{}.refused(at(0), at(1), 64, 0).refused(at(0.5), at(1.1), 63, 0), at(1.1), 32},
		"the next crowd halves it once more":  {pace{}.refused(at(0), at(1), 64, 0).refused(at(1.2), at(1.3), 32, 0), at(1.3), 16},
		"half of those that were, not might":  {pace{}.refused(at(0), at(1), 64, 0).refused(at(60), at(61), 4, 0), at(61), 2},
		"a wait that makes no sense is none":  {pace{}.refused(at(0), at(1), 1, -time.Hour), at(1), 1},
		"with more than one, nobody is quiet": {pace{}.refused(at(0), at(1), 2, time.Minute), at(1), 1},
	} {
		if got := tc.pace.at(tc.when); got != tc.want {
			t.Errorf("%s: %d may be under way, want %d", reason, got, tc.want)
		}
	}
}

// TestPaceUnderAnyRefusals: whatever is refused when, it is never more than before plus one a second, never stuck, and never
// less than half after one crowd.
func TestPaceUnderAnyRefusals(t *testing.T) {
	t.Parallel()

	for seed := range uint64(200) {
		var (
			random = rand.New(rand.NewPCG(seed, 1))
			now    = time.Now()
			p      pace
		)

		for range 100 {
			passed := time.Duration(random.Int64N(int64(3 * time.Second)))
			before := p.at(now)
			now = now.Add(passed)

			if grown := p.at(now); before != math.MaxInt && grown > before+1+int(passed/paceStep) {
				t.Fatalf("seed %d: from %d to %d in %v", seed, before, grown, passed)
			}

			allowed := p.at(now)
			underWay := 1 + random.IntN(min(100, max(1, allowed)))
			sent := now.Add(-time.Duration(random.Int64N(int64(2 * time.Second))))
			next := p.refused(sent, now, underWay, time.Duration(random.Int64N(int64(time.Minute))))

			switch got, half := next.at(now.Add(next.quiet)), min(allowed, underWay)/2; {
			case sent.Before(p.cut) && next != p:
				t.Fatalf("seed %d: one of the same crowd changed %+v to %+v", seed, p, next)
			case !sent.Before(p.cut) && got != max(1, half):
				t.Fatalf("seed %d: %d of %d under way, %d allowed then; got %d", seed, underWay, allowed, half, got)
			case next.at(now.Add(maxQuiet)) < 1:
				t.Fatalf("seed %d: nobody may ask even after %v: %+v", seed, maxQuiet, next)
			}

			p = next
		}
	}
}

// busyServer answers each request after a while, and refuses what is beyond its seats.
type busyServer struct {
	seats int
	takes time.Duration
	// contentType is of the refusals.
	contentType string

	mu                     sync.Mutex
	underWay, most, refuse int
}

func (s *busyServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.underWay++
	s.most = max(s.most, s.underWay)
	full := s.underWay > s.seats

	if full {
		s.refuse++
	}
	s.mu.Unlock()

	defer func() {
		s.mu.Lock()
		s.underWay--
		s.mu.Unlock()
	}()

	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}

	if full {
		time.Sleep(time.Millisecond)

		response.StatusCode = http.StatusTooManyRequests
		response.Header.Set("Content-Type", s.contentType)
		response.Header.Set("Retry-After", "1")

		return response, nil
	}

	select {
	case <-time.After(s.takes):
		return response, nil
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
}

// reset begins to count anew.
func (s *busyServer) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.most, s.refuse = 0, 0
}

// ask makes a request as client-go does: again after as long as the answer says, up to ten times.
func ask(ctx context.Context, through http.RoundTripper) error {
	for range 11 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api", strings.NewReader("{}"))
		if err != nil {
			return err
		}

		response, err := through.RoundTrip(request)
		if err != nil {
			return err
		}

		if err := response.Body.Close(); err != nil {
			return err
		}

		if response.StatusCode != http.StatusTooManyRequests {
			return nil
		}

		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	return errors.New("refused for good")
}

// crowd asks n times, with so many at once, and counts what failed.
func crowd(ctx context.Context, through http.RoundTripper, n, atOnce int) int {
	var (
		failed  int
		mu      sync.Mutex
		workers sync.WaitGroup
		jobs    = make(chan struct{}, n)
	)

	for range n {
		jobs <- struct{}{}
	}

	close(jobs)

	for range atOnce {
		workers.Go(func() {
			for range jobs {
				if ask(ctx, through) != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}

	workers.Wait()

	return failed
}

const limitsOwn = "text/plain; charset=utf-8"

// TestRequestsFitWhereThereIsLittleRoom: with and without the gate, so that it is known what the gate is good for.
func TestRequestsFitWhereThereIsLittleRoom(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{seats: 3, takes: 10 * time.Millisecond, contentType: limitsOwn}
		if crowd(t.Context(), s, 64, 64); s.most != 64 {
			t.Fatalf("the setup: %d at once, want all", s.most)
		}

		without := s.refuse
		s.reset()

		g := newGate(s)
		if failed := crowd(t.Context(), g, 200, 64); failed > 0 || s.refuse == 0 {
			t.Errorf("%d failed, %d were refused", failed, s.refuse)
		}

		first := s.refuse
		s.reset()

		if failed := crowd(t.Context(), g, 1000, 64); failed > 0 || s.most > s.seats+1 {
			t.Errorf("%d failed, %d were under way at once, with room for %d", failed, s.most, s.seats)
		}

		t.Logf("without: %d of 64 refused; with: %d of 200, then %d of 1000", without, first, s.refuse)

		// It comes back.
		s.seats = 1000
		time.Sleep(time.Minute)
		s.reset()

		if crowd(t.Context(), g, 1000, 64); s.most < 60 {
			t.Errorf("a minute later %d are under way at once", s.most)
		}
	})
}

// TestOthersSlowNobodyDown: what an admission webhook answers in the name of the API server, and what hangs in one.
func TestOthersSlowNobodyDown(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{seats: 1, takes: time.Millisecond, contentType: "application/json"}
		g := newGate(s)
		crowd(t.Context(), g, 64, 64)
		s.reset()

		if crowd(t.Context(), g, 64, 64); s.most != 64 || s.refuse == 0 {
			t.Errorf("after a Status of the code 429, %d of 64 are under way at once, %d are refused", s.most, s.refuse)
		}

		// Only one may ask, and what asks hangs.
		s = &busyServer{seats: 1, takes: time.Millisecond, contentType: limitsOwn}
		g = newGate(s)
		crowd(t.Context(), g, 64, 64)
		s.mu.Lock()
		s.takes, s.seats = time.Hour, 100
		s.mu.Unlock()

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int)

		go func() { ended <- crowd(ctx, g, 3, 3) }()

		time.Sleep(4 * memberWait)
		s.mu.Lock()
		under := s.underWay
		s.mu.Unlock()

		if under != 3 {
			t.Errorf("%d are under way; what hangs keeps the others", under)
		}

		cancel()

		if failed := <-ended; failed != 3 {
			t.Errorf("%d failed", failed)
		}
	})
}

// TestWhoWaitsCanLeave: a write that is not wanted any more does not wait for its turn.
func TestWhoWaitsCanLeave(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{seats: 0, takes: time.Millisecond, contentType: limitsOwn}
		g := newGate(s)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		go func() { _ = ask(ctx, g) }()

		time.Sleep(500 * time.Millisecond) // It is refused, and quiet for a second.

		impatient, cancelSoon := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancelSoon()

		limited, held := withHeldBack(impatient)
		if err := ask(limited, g); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want its own end", err)
		}

		if got := held.soFar(); got != 100*time.Millisecond || s.refuse != 1 {
			t.Errorf("it was held back for %v, and %d were refused", got, s.refuse)
		}

		cancel()
		synctest.Wait()
	})
}

// TestHeldBack: what counts is the time before the first try and between the tries, in whatever is done for one write.
func TestHeldBack(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{seats: 1, takes: 300 * time.Millisecond, contentType: limitsOwn}
		g := newGate(s)

		outer, held := withHeldBack(t.Context())
		inner, same := withHeldBack(outer)

		if held != same {
			t.Error("a write is measured twice")
		}

		for range 2 {
			if err := ask(inner, g); err != nil {
				t.Fatal(err)
			}
		}

		if got := held.soFar(); got != 0 {
			t.Errorf("with room enough, it was held back for %v", got)
		}

		go func() { _ = ask(t.Context(), g) }()

		synctest.Wait()

		if err := ask(inner, g); err != nil {
			t.Fatal(err)
		}

		if got := held.soFar(); got != time.Second {
			t.Errorf("it was held back for %v, want the second that the answer says", got)
		}
	})
}
