package controllers

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// starting is an API server that is down, refuses everybody until it is ready, and allows everything after that.
type starting struct {
	up, readyAt time.Time
	asked       []string
	broken      bool
}

func (s *starting) RoundTrip(r *http.Request) (*http.Response, error) {
	now, code := time.Now(), http.StatusOK

	if err := r.Context().Err(); err != nil || now.Before(s.up) {
		return nil, net.ErrClosed
	}

	body := ""

	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		body = " " + string(text)
	}

	s.asked = append(s.asked, r.Method+" "+r.URL.Path+body)

	switch isReady := !now.Before(s.readyAt) && !s.broken; {
	case r.URL.Path == "/proxy/readyz" && r.Header.Get("Impersonate-User") != "":
		code = http.StatusNotFound // Who asks whether it is ready asks as nobody else.
	case isReady:
	case r.URL.Path == "/proxy/readyz" && s.broken:
		code = http.StatusForbidden
	case r.URL.Path == "/proxy/readyz" && s.readyAt.Sub(now) < time.Second/2:
		code = http.StatusInternalServerError // Before that, it refuses this as well.
	default:
		code = http.StatusForbidden
	}

	return &http.Response{StatusCode: code, Body: http.NoBody, Request: r}, nil
}

func (s *starting) down(refuses time.Duration) {
	s.up = time.Now().Add(time.Second)
	s.readyAt, s.asked = s.up.Add(refuses), nil
}

// TestStartingServerIsNotBelieved: what an API server refuses before it is ready is asked again, once it is, and whoever asks
// does not hear of it. Whatever waits hears once that it is ready.
func TestStartingServerIsNotBelieved(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		server, heard := &starting{}, 0
		config := &rest.Config{Host: "https://server/proxy"}
		config.Wrap(func(http.RoundTripper) http.RoundTripper { return server })

		answers, err := NewAnswers(config)
		if err != nil {
			t.Fatal(err)
		}

		answers.onReady(func() { heard++ })

		through := config.WrapTransport(nil)
		ask := func(ctx context.Context, body io.Reader) int {
			t.Helper()

			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://server/proxy/api/v1/namespaces", body)
			if err != nil {
				t.Fatal(err)
			}

			request.Header.Set("Impersonate-User", "delegate")

			response, err := through.RoundTrip(request)
			synctest.Wait()

			if err != nil {
				return 0
			}

			_ = response.Body.Close()

			return response.StatusCode
		}
		want := func(what string, got, code, times int) {
			t.Helper()

			if got != code || heard != times {
				t.Errorf("%s: the answer is %d, want %d; heard %d times that it is ready, want %d", what, got, code, heard, times)
			}
		}

		server.readyAt = time.Now().Add(time.Second)
		want("a server that started with Ambit", ask(t.Context(), strings.NewReader("content")), http.StatusOK, 1)

		first, last := "POST /proxy/api/v1/namespaces content", server.asked[len(server.asked)-1]
		if server.asked[0] != first || last != first || !slices.Contains(server.asked, "GET /proxy/readyz") {
			t.Errorf("asked for %q", server.asked)
		}

		server.asked = nil

		want("a server that is ready", ask(t.Context(), nil), http.StatusOK, 1)

		if len(server.asked) != 1 {
			t.Errorf("that took %q", server.asked)
		}

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		want("a request that was given up", ask(gone, nil), 0, 1)
		want("the next one", ask(t.Context(), nil), http.StatusOK, 1)

		server.down(2 * time.Second)
		want("a server that is down", ask(t.Context(), nil), 0, 1)
		time.Sleep(time.Second)

		began := time.Now()
		want("a server that starts", ask(t.Context(), nil), http.StatusOK, 2)

		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("it was asked again after %s", took)
		}

		server.down(0)
		want("a request that a proxy broke off", ask(t.Context(), nil), 0, 2)
		time.Sleep(time.Second)
		want("the one after that", ask(t.Context(), nil), http.StatusOK, 2)

		server.down(0)
		want("a server that never is ready", ask(t.Context(), nil), 0, 2)
		time.Sleep(time.Second)

		server.broken, began = true, time.Now()
		want("its refusal", ask(t.Context(), nil), http.StatusForbidden, 3)

		if took := time.Since(began); took < readyWithin || took > readyWithin+time.Second {
			t.Errorf("it was believed after %s", took)
		}
	})
}

// TestReviewOfAStartingServerIsNotBelieved: an API server that has read some of the roles says what those allow, and no more.
// Only what it says once it is ready counts.
func TestReviewOfAStartingServerIsNotBelieved(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		readyAt := time.Now().Add(3 * time.Second)
		config := &rest.Config{Host: "https://server"}
		config.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTrips(func(r *http.Request) (*http.Response, error) {
				code, body := http.StatusCreated, "all"

				if time.Now().Before(readyAt) {
					body = "half"
				}

				if r.URL.Path == "/readyz" && body == "half" {
					code = http.StatusInternalServerError
				}

				return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})
		})

		if _, err := NewAnswers(config); err != nil {
			t.Fatal(err)
		}

		for _, tc := range []struct{ path, want string }{
			{"/api/v1/namespaces", "half"}, {"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "all"},
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server"+tc.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}

			response, err := config.WrapTransport(nil).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}

			if body, err := io.ReadAll(response.Body); err != nil || string(body) != tc.want {
				t.Errorf("%s answers %q, %v, want %q", tc.path, body, err, tc.want)
			}

			_ = response.Body.Close()
		}

		time.Sleep(readyWithin) // Until nobody asks whether it is ready any more.
	})
}

type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
