package controllers

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// TestAnswersAgain: whatever waits hears once that the API server answers again, and only of that.
func TestAnswersAgain(t *testing.T) {
	t.Parallel()

	heard, server := 0, &scripted{}
	client := &http.Client{Transport: (&answers{again: func() { heard++ }}).through(server)}
	gone, cancel := context.WithCancel(t.Context())
	cancel()

	for _, step := range []struct {
		what  string
		ctx   context.Context
		code  int
		heard int
	}{
		{"the first answer", t.Context(), http.StatusOK, 0},
		{"a request that was given up", gone, 0, 0},
		{"an answer after that", t.Context(), http.StatusOK, 0},
		{"no answer", t.Context(), 0, 0},
		{"none again", t.Context(), 0, 0},
		{"a webhook that fails", t.Context(), http.StatusInternalServerError, 0},
		{"an answer again", t.Context(), http.StatusForbidden, 1},
		{"a further one", t.Context(), http.StatusOK, 1},
		{"no answer any more", t.Context(), 0, 1},
		{"an answer once more", t.Context(), http.StatusOK, 2},
	} {
		server.code = step.code

		request, err := http.NewRequestWithContext(step.ctx, http.MethodGet, "http://server/", nil)
		if err != nil {
			t.Fatal(err)
		}

		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()
		}

		if heard != step.heard {
			t.Errorf("after %s: heard %d times, want %d", step.what, heard, step.heard)
		}
	}
}

// scripted answers with a code; not at all, if that is zero.
type scripted struct{ code int }

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil || s.code == 0 {
		return nil, net.ErrClosed
	}

	return &http.Response{StatusCode: s.code, Body: http.NoBody, Request: r}, nil
}
