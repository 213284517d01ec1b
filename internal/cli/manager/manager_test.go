package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// TestWhoAmIWaitsForTheAPIServer: one that starts refuses everybody at first, and a manager that starts with it does not end.
func TestWhoAmIWaitsForTheAPIServer(t *testing.T) {
	t.Parallel()

	var asked atomic.Int32

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			http.NotFound(w, r)

			return
		}

		w.Header().Set("Content-Type", "application/json")

		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))

			return
		}

		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1",
			"status":{"userInfo":{"username":"ambit"}}}`))
	}))
	t.Cleanup(server.Close)

	if name, err := whoAmI(t.Context(), &rest.Config{Host: server.URL}); name != "ambit" || err != nil {
		t.Errorf("got %q (%v)", name, err)
	}

	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// TestAskedToEnd: a manager that is asked to end while it begins has not failed; one that is not asked has, and so has one that
// does not end in time.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()

	ctx, ask := context.WithCancel(t.Context())
	broken := errors.New("cache did not sync")

	if err := ended(ctx, logr.Discard(), broken); !errors.Is(err, broken) {
		t.Errorf("not asked: got %v", err)
	}

	ask()

	if err := ended(ctx, logr.Discard(), broken); err != nil {
		t.Errorf("asked: got %v", err)
	}

	late := fmt.Errorf("waiting: %w", context.DeadlineExceeded)
	if err := ended(ctx, logr.Discard(), late); !errors.Is(err, late) {
		t.Errorf("too late: got %v", err)
	}
}
