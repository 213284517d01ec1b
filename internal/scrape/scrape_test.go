package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// server is an API server that knows two tokens, and counts what it is asked.
type server struct {
	guard   *guard
	now     time.Time
	asked   int
	away    bool
	handler http.Handler
}

func newServer(t *testing.T) *server {
	t.Helper()

	s := &server{now: time.Unix(1000, 0)}
	s.guard = newGuard(func(_ context.Context, token, path string) (int, error) {
		s.asked++

		switch {
		case s.away:
			return 0, errors.New("away")
		case token == "prometheus" && path == "/metrics":
			return http.StatusOK, nil
		case token == "prometheus", token == "tenant":
			return http.StatusForbidden, nil
		default:
			return http.StatusUnauthorized, nil
		}
	})
	s.guard.now = func() time.Time { return s.now }
	s.handler = s.guard.handler(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("numbers"))
	}))

	return s
}

func (s *server) get(method, path, authorization string) int {
	r := httptest.NewRequest(method, path, http.NoBody)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}

	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)

	if strings.Contains(w.Body.String(), "numbers") != (w.Code == http.StatusOK) {
		return -w.Code
	}

	return w.Code
}

func TestWhoReadsMetrics(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason, method, path, authorization string
		want, asked                         int
	}{
		"Allowed":   {"who may get the path reads it", "GET", "/metrics", "Bearer prometheus", 200, 1},
		"Lower":     {"the scheme has no case", "GET", "/metrics", "bearer prometheus", 200, 1},
		"OtherPath": {"what may be read is asked of each path", "GET", "/debug", "Bearer prometheus", 403, 1},
		"Not":       {"a token alone is not enough", "GET", "/metrics", "Bearer tenant", 403, 1},
		"Unknown":   {"nobody's token", "GET", "/metrics", "Bearer x", 401, 1},
		"Nobody":    {"who bears no token is not asked about", "GET", "/metrics", "", 401, 0},
		"Empty":     {"an empty token would be whoever the API server makes of it", "GET", "/metrics", "Bearer ", 401, 0},
		"Basic":     {"another scheme", "GET", "/metrics", "Basic prometheus", 401, 0},
		"Long": {
			"nobody sends the API server what is no token", "GET", "/metrics", "Bearer " + strings.Repeat("x", MaxToken+1), 401, 0,
		},
		"NotReading": {"the right to get is the only one", "POST", "/metrics", "Bearer prometheus", 405, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newServer(t)
			if got := s.get(tc.method, tc.path, tc.authorization); got != tc.want || s.asked != tc.asked {
				t.Errorf("%s: got %d after %d questions, want %d after %d", tc.reason, got, s.asked, tc.want, tc.asked)
			}
		})
	}
}

func TestAnswersAreRemembered(t *testing.T) {
	t.Parallel()

	s := newServer(t)

	for range 10 {
		s.get("GET", "/metrics", "Bearer prometheus")
		s.get("GET", "/metrics", "Bearer tenant")
		s.get("GET", "/metrics", "Bearer x")
	}

	if s.asked != 3 {
		t.Errorf("three tokens took %d questions, want 3", s.asked)
	}

	s.now = s.now.Add(allowed)
	s.away = true

	if got := s.get("GET", "/metrics", "Bearer prometheus"); got != http.StatusServiceUnavailable {
		t.Errorf("with the answer too old and the API server away: got %d, want 503", got)
	}

	s.away = false

	if got := s.get("GET", "/metrics", "Bearer prometheus"); got != http.StatusOK {
		t.Errorf("once the API server is back: got %d, want 200: that it could not be asked must not be remembered", got)
	}
}

// Everybody who reaches the port can invent tokens. That must neither become as many questions, nor keep those out who were let
// in before, nor fill the memory.
func TestInventedTokens(t *testing.T) {
	t.Parallel()

	s := newServer(t)
	if got := s.get("GET", "/metrics", "Bearer prometheus"); got != http.StatusOK {
		t.Fatalf("got %d, want 200", got)
	}

	const seconds, perSecond = 180, 500

	waited := 0

	for i := range seconds * perSecond {
		s.now = s.now.Add(time.Second / perSecond)

		if s.get("GET", "/metrics", fmt.Sprintf("Bearer invented-%d", i)) == http.StatusTooManyRequests {
			waited++
		}

		if i%perSecond != 0 {
			continue
		}

		if got := s.get("GET", "/metrics", "Bearer prometheus"); got != http.StatusOK {
			t.Fatalf("after %d invented tokens, who was let in before gets %d", i, got)
		}
	}

	if most := reviewsAtOnce + seconds*reviewsPerSecond + seconds/int(allowed.Seconds()) + 2; s.asked > most {
		t.Errorf("%d invented tokens led to %d questions, want at most %d", seconds*perSecond, s.asked, most)
	}

	if waited == 0 {
		t.Error("no invented token had to wait")
	}

	if most := reviewsAtOnce + (int(refused.Seconds())+1)*reviewsPerSecond; len(s.guard.answers) > most {
		t.Errorf("%d answers are remembered, want at most %d", len(s.guard.answers), most)
	}
}

func TestKnownTokensAreBounded(t *testing.T) {
	t.Parallel()

	g := newGuard(func(context.Context, string, string) (int, error) { return http.StatusOK, nil })
	now := time.Unix(1000, 0)
	g.now = func() time.Time { return now }
	g.handler(logr.Discard(), http.NotFoundHandler())

	for i := range 10 * maxKnown {
		now = now.Add(time.Second)
		g.remember(key{byte(i), byte(i >> 8)}, http.StatusOK)
	}

	if len(g.known) != maxKnown {
		t.Errorf("%d tokens are known, want %d", len(g.known), maxKnown)
	}

	now = now.Add(knownLife)
	g.remember(key{1, 2, 3}, http.StatusOK)

	if len(g.known) != 1 {
		t.Errorf("%d tokens are known after an hour, want the one", len(g.known))
	}
}
