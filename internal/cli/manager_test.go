package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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
