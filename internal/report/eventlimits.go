package report

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// eventsAtOnce is how many events of one namespace are written at once, and eventTimeout how long each may take, with the wait
	// for its turn. After one took longer, none is written in that namespace for eventPause.
	eventsAtOnce = 4
	eventTimeout = 5 * time.Second
	eventPause   = 30 * time.Second
)

// LimitEvents bounds what the events of one namespace may cost, where an admission webhook hangs for example. client-go sends
// each event as soon as it comes, waits for the answer without end, and ends a series while every other event waits for that
// (finishSeries in k8s.io/client-go/tools/events/event_broadcaster.go).
func LimitEvents() func(http.RoundTripper) http.RoundTripper {
	rooms := &byNamespace[*eventRoom]{
		begin:  func() *eventRoom { return &eventRoom{turns: make(chan struct{}, eventsAtOnce)} },
		isIdle: func(room *eventRoom) bool { return len(room.turns) == 0 && !room.isPaused() },
	}

	return func(next http.RoundTripper) http.RoundTripper { return &limitedEvents{rooms: rooms, next: next} }
}

// eventRoom is what one namespace has.
type eventRoom struct {
	turns chan struct{}

	mu     sync.Mutex
	paused time.Time
}

type limitedEvents struct {
	rooms *byNamespace[*eventRoom]
	next  http.RoundTripper
}

// RoundTrip makes a request. That an event could not be written in time is an answer, after which client-go does not try again.
func (e *limitedEvents) RoundTrip(request *http.Request) (*http.Response, error) {
	path, is := strings.CutPrefix(request.URL.Path, "/apis/events.k8s.io/v1/namespaces/")
	if !is {
		return e.next.RoundTrip(request) //nolint:wrapcheck // It hands on what it is given.
	}

	namespace, _, _ := strings.Cut(path, "/")
	room := e.rooms.in(namespace)

	ctx, cancel := context.WithTimeout(request.Context(), eventTimeout)
	defer cancel()

	if room.enter(ctx) {
		defer func() { <-room.turns }()

		response, err := e.write(request.WithContext(ctx))
		if err == nil || ctx.Err() == nil || request.Context().Err() != nil {
			return response, err
		}

		room.pause()
	} else if request.Body != nil {
		_ = request.Body.Close() // A RoundTripper closes the body even if it sends nothing.
	}

	return &http.Response{StatusCode: http.StatusGatewayTimeout, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
}

// write makes a request, and reads the answer in the same time.
func (e *limitedEvents) write(request *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // It hands on what it is given.
	}

	body, err := io.ReadAll(response.Body)
	if _ = response.Body.Close(); err != nil {
		return nil, err //nolint:wrapcheck // It is for whoever would have read it.
	}

	response.Body = io.NopCloser(bytes.NewReader(body))

	return response, nil
}

// enter waits for a turn, and says whether it came in time and something may be written.
func (r *eventRoom) enter(ctx context.Context) bool {
	select {
	case r.turns <- struct{}{}:
	case <-ctx.Done():
		return false
	}

	if r.isPaused() {
		<-r.turns

		return false
	}

	return true
}

func (r *eventRoom) isPaused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return time.Now().Before(r.paused)
}

func (r *eventRoom) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.paused = time.Now().Add(eventPause)
}
