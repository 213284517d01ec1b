package apply

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// paceStep is after how long one more request may be under way.
	paceStep = time.Second
	// maxQuiet is the longest time for which no request is sent because the API server said so; by itself it never says more
	// (dropped_requests_tracker.go in k8s.io/apiserver).
	maxQuiet = 32 * time.Second
)

// pace is how many requests of one identity may be under way at once. Where a priority level has no room, the API server answers
// 429. client-go waits for as long as the answer says and asks again, up to ten times, as many at once as before. So each such
// answer halves how many that are, and every second that passes allows one more. The zero value limits nothing.
type pace struct {
	// allowed is how many were allowed after the last cut, once nothing was sent for the time quiet.
	allowed int
	cut     time.Time
	quiet   time.Duration
}

// begins is when the first request after the last cut may be made.
func (p pace) begins() time.Time { return p.cut.Add(p.quiet) }

// at is how many requests may be under way at a time.
func (p pace) at(now time.Time) int {
	switch {
	case p.cut.IsZero():
		return math.MaxInt
	case now.Before(p.begins()):
		return 0
	default:
		return p.allowed + int(now.Sub(p.begins())/paceStep)
	}
}

// refused is the pace once a request that was sent at a time was refused, with so many under way. A request that was sent before
// the last cut belongs to the same crowd, and cuts nothing. An identity with a single request under way waits for as long as the
// API server says.
func (p pace) refused(sent, now time.Time, underWay int, wait time.Duration) pace {
	if sent.Before(p.cut) {
		return p
	}

	if n := min(p.at(now), underWay); n > 1 {
		return pace{allowed: n / 2, cut: now}
	}

	return pace{allowed: 1, cut: now, quiet: max(0, min(wait, maxQuiet))}
}

// refusal is how long the API server says to wait when its own limits refuse a request. They answer in plain text
// (tooManyRequests in filters/maxinflight.go of k8s.io/apiserver). A Status of the same code comes from behind them: from a
// PodDisruptionBudget, or from an admission webhook, by which whoever owns one namespace could slow down all others.
func refusal(response *http.Response) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		return 0, false
	}

	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))

	return time.Duration(seconds) * time.Second, err == nil
}

// OnlyOwnLimits has client-go wait for the API server's own limits, and for the budget of a pod. An admission webhook can tell it
// to wait for a day as well, ten times, and whatever comes after that write would wait, too, such as what is to be revoked.
func OnlyOwnLimits(next http.RoundTripper) http.RoundTripper { return &ownLimits{next} }

type ownLimits struct{ next http.RoundTripper }

// RoundTrip makes a request.
func (o *ownLimits) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller knows it by its type.
	}

	if _, is := refusal(response); !is && request.Method != http.MethodGet && !strings.HasSuffix(request.URL.Path, "/eviction") {
		response.Header.Del("Retry-After")
	}

	return response, nil
}

// gate lets the requests of one identity through at its pace, first come, first served.
type gate struct {
	next http.RoundTripper

	mu       sync.Mutex
	pace     pace
	underWay int
	waiting  []chan struct{}
	// woken says that a timer is set to admit whoever waits once the quiet time is over.
	woken bool
}

func newGate(next http.RoundTripper) http.RoundTripper { return &gate{next: next} }

// RoundTrip makes a request when it is its turn.
func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	held := heldBackOf(request.Context())
	held.begin()

	leave, err := g.enter(request.Context())

	held.end()

	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // As http.RoundTripper asks.
		}

		return nil, err
	}
	defer leave()

	sent := time.Now()

	response, err := g.next.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller knows it by its type.
	}

	if wait, is := refusal(response); is {
		held.begin() // Until client-go asks again.
		g.refused(sent, wait)
	}

	return response, nil
}

// enter waits for the turn of a request, and returns what ends it. What takes long, such as an admission webhook, must not keep
// others waiting: after a while it counts as ended.
func (g *gate) enter(ctx context.Context) (func(), error) {
	turn := make(chan struct{})

	g.mu.Lock()
	g.waiting = append(g.waiting, turn)
	g.admit()
	g.mu.Unlock()

	select {
	case <-turn:
	case <-ctx.Done():
		if g.withdraw(turn) {
			return nil, context.Cause(ctx) //nolint:wrapcheck // Whoever made the context knows why it ended.
		}
	}

	leave := sync.OnceFunc(g.leave)
	timer := time.AfterFunc(memberWait, leave)

	return func() {
		timer.Stop()
		leave()
	}, nil
}

// admit lets through as many of the waiting as the pace allows. It is called with the lock held.
func (g *gate) admit() {
	now := time.Now()

	for len(g.waiting) > 0 && g.underWay < g.pace.at(now) {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.underWay++
	}

	// Otherwise whoever ends next admits others.
	if len(g.waiting) > 0 && g.underWay == 0 && !g.woken {
		g.woken = true

		time.AfterFunc(g.pace.begins().Sub(now), g.wake)
	}
}

func (g *gate) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.woken = false
	g.admit()
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.underWay--
	g.admit()
}

// withdraw takes back who waits, and says whether they still did.
func (g *gate) withdraw(turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	at := slices.Index(g.waiting, turn)
	if at < 0 {
		return false
	}

	g.waiting = slices.Delete(g.waiting, at, at+1)

	return true
}

func (g *gate) refused(sent time.Time, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.pace = g.pace.refused(sent, time.Now(), g.underWay, wait)
}

// heldBack is for how long a write was not even sent, because too many requests were under way. A member's webhook is not to
// blame for that time.
type heldBack struct {
	mu    sync.Mutex
	total time.Duration
	since time.Time
}

type heldBackKey struct{}

// withHeldBack returns a context in which it is measured, from where the outermost one began.
func withHeldBack(ctx context.Context) (context.Context, *heldBack) {
	h := heldBackOf(ctx)

	return context.WithValue(ctx, heldBackKey{}, h), h
}

// heldBackOf is the one of a context; one that nobody asks where there is none.
func heldBackOf(ctx context.Context) *heldBack {
	if h, ok := ctx.Value(heldBackKey{}).(*heldBack); ok {
		return h
	}

	return &heldBack{}
}

func (h *heldBack) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.since.IsZero() {
		h.since = time.Now()
	}
}

func (h *heldBack) end() {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.total, h.since = h.total+time.Since(h.since), time.Time{}
}

// soFar is all of it until now.
func (h *heldBack) soFar() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.since.IsZero() {
		return h.total
	}

	return h.total + time.Since(h.since)
}
