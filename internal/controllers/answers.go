package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// readyEvery is how often an API server that has begun to answer is asked whether it is ready, and readyWithin for how long:
	// one that never says so is believed all the same.
	readyEvery  = 200 * time.Millisecond
	readyWithin = 30 * time.Second
	// longSilence is after how much of it whatever failed is tried again. A proxy may break off each request of a kind.
	longSilence = 2 * time.Second
)

// Answers are those of the API server, to everything that a manager asks. One that has just begun does not know the roles yet,
// nor the service accounts, and refuses everybody, until it says at /readyz that it is ready. Some of them it may know before the
// others, and then it says too little about what somebody may do. What it refuses or reviews before is asked again then: Ambit
// would take it for a decision, which only a change of permissions overturns. And whatever failed while it did not answer is
// tried again at once, if that took long.
type Answers struct {
	readyz string

	mu sync.Mutex
	// again is done each time that the API server is ready again.
	again func()
	// ready is nil while the API server is believed, which it was until since; else it is closed once it is again. asking says that
	// it is being asked whether it is ready.
	ready  chan struct{}
	since  time.Time
	asking bool
}

// NewAnswers returns the answers to all that is asked by a config, and by copies of it that are made from now on.
func NewAnswers(config *rest.Config) (*Answers, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}

	a := &Answers{readyz: server.JoinPath("readyz").String(), again: func() {}, ready: make(chan struct{})}

	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &answered{answers: a, next: next} })

	return a, nil
}

// onReady has something done, which must not wait for requests, each time that the API server is ready again.
func (a *Answers) onReady(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.again = do
}

// silent notes that a request was not answered.
func (a *Answers) silent() {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.ready == nil {
		a.ready, a.since = make(chan struct{}), time.Now()
	}
}

func (a *Answers) whenReady() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.ready
}

// ask begins to ask whether the API server is ready, unless that is being asked.
func (a *Answers) ask(isReady func(context.Context) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if !a.asking && a.ready != nil {
		a.asking = true

		go a.await(isReady)
	}
}

func (a *Answers) await(isReady func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()

	for !isReady(ctx) && ctx.Err() == nil {
		time.Sleep(readyEvery)
	}

	a.mu.Lock()
	a.asking = false
	close(a.ready)
	a.ready = nil
	again, silence := a.again, time.Since(a.since)
	a.mu.Unlock()

	if silence >= longSilence {
		again()
	}
}

type answered struct {
	answers *Answers
	next    http.RoundTripper
}

var errStarting = errors.New("the API server is starting, and refuses what it may allow once it has read the roles")

// RoundTrip makes a request, and makes it again once the API server is ready, if it was refused or reviewed by one that is not.
// One that whoever asked gave up says nothing of the API server.
func (a *answered) RoundTrip(request *http.Request) (*http.Response, error) {
	ready := a.answers.whenReady()
	response, err := a.next.RoundTrip(request)

	switch {
	case err != nil:
		if request.Context().Err() == nil {
			a.answers.silent()
		}

		return nil, err //nolint:wrapcheck // It hands on what it is given.
	case ready == nil:
		return response, nil
	}

	a.answers.ask(func(ctx context.Context) bool { return a.isReady(ctx, request) })

	// What a review says of what somebody may do is in its body, whatever its status is.
	if isReview := strings.Contains(request.URL.Path, "/apis/authorization.k8s.io/"); !isReview && !isRefusal(response) {
		return response, nil
	}

	_ = response.Body.Close()

	select {
	case <-ready:
		return a.repeat(request)
	case <-request.Context().Done():
		return nil, context.Cause(request.Context()) //nolint:wrapcheck // Whoever made the context knows why it ended.
	}
}

// repeat makes a request that did nothing, because it was refused or is a review, once more.
func (a *answered) repeat(request *http.Request) (*http.Response, error) {
	once := request.Clone(request.Context())

	if request.Body != nil && request.Body != http.NoBody {
		if request.GetBody == nil {
			return nil, errStarting
		}

		body, err := request.GetBody()
		if err != nil {
			return nil, errors.Join(errStarting, err)
		}

		once.Body = body
	}

	return a.next.RoundTrip(once) //nolint:wrapcheck // It hands on what it is given.
}

// isReady asks the API server, with the credentials of another request, whether it is ready. Everybody may ask, by a role that it
// has to have read first (system:public-info-viewer).
func (a *answered) isReady(ctx context.Context, like *http.Request) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.answers.readyz, nil)
	if err != nil {
		return true
	}

	request.Header.Set("User-Agent", like.UserAgent())

	if token := like.Header.Get("Authorization"); token != "" {
		request.Header.Set("Authorization", token)
	}

	response, err := a.next.RoundTrip(request)
	if err != nil {
		return false
	}

	_ = response.Body.Close()

	return !isRefusal(response) && response.StatusCode < http.StatusInternalServerError
}

func isRefusal(response *http.Response) bool {
	return response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized
}
