package read

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// watchesAtOnce is how many watches of the same things may begin at once, and watchEvery how far apart they begin after that.
	watchesAtOnce = 5
	watchEvery    = time.Second
	// maxPaths is how many paths are remembered before those are forgotten of which no watch has begun for a while.
	maxPaths = 1_000
)

// LimitWatches limits how often watches of the same things begin. The reflectors of client-go begin one again at once, forever,
// where the API server, or what stands before it, answers with 410 Gone to one that asks for everything (watchList in
// k8s.io/client-go/tools/cache/reflector.go).
func LimitWatches() func(http.RoundTripper) http.RoundTripper {
	l := &watchLimits{of: map[string]*rate.Limiter{}}

	return func(next http.RoundTripper) http.RoundTripper { return &limitedWatches{limits: l, next: next} }
}

type watchLimits struct {
	mu sync.Mutex
	// of are the limits by path and account of the watches; swept is when it was last looked which can be forgotten.
	of    map[string]*rate.Limiter
	swept time.Time
}

type limitedWatches struct {
	limits *watchLimits
	next   http.RoundTripper
}

// RoundTrip makes a request, when it is its turn.
func (w *limitedWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && request.URL.Query().Has("watch") {
		if err := w.limits.limiter(request).Wait(request.Context()); err != nil {
			return nil, err //nolint:wrapcheck // Whoever asked gave up.
		}
	}

	return w.next.RoundTrip(request) //nolint:wrapcheck // It hands on what it is given.
}

func (l *watchLimits) limiter(request *http.Request) *rate.Limiter {
	what := request.Header.Get("Impersonate-User") + " " + request.URL.Path + "?" + request.URL.Query().Get("fieldSelector") +
		request.URL.Query().Get("labelSelector")

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.of[what] == nil {
		l.forget()

		l.of[what] = rate.NewLimiter(rate.Every(watchEvery), watchesAtOnce)
	}

	return l.of[what]
}

// forget drops what has begun no watch for a while, once there is much of it: namespaces come and go.
func (l *watchLimits) forget() {
	if len(l.of) < maxPaths || time.Since(l.swept) < time.Minute {
		return
	}

	l.swept = time.Now()

	for what, of := range l.of {
		if of.Tokens() >= watchesAtOnce {
			delete(l.of, what)
		}
	}
}
