package testcluster

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// Send makes one request with a JSON body, as no client of Kubernetes would, and returns the head of the answer.
func Send(t testing.TB, cfg *rest.Config, method, path, body string) *http.Response {
	t.Helper()

	through, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}

	request, err := http.NewRequestWithContext(t.Context(), method, cfg.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Content-Type", "application/json")

	response, err := through.Do(request)
	if err != nil {
		t.Fatal(err)
	}

	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}

	return response
}
