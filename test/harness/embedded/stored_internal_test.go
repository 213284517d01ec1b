package embedded

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// late answers a few times that etcd was too late, and then that all is well.
type late struct {
	times int
	says  string
	got   []string
}

func (l *late) RoundTrip(request *http.Request) (*http.Response, error) {
	body := ""

	if request.Body != nil {
		text, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}

		body = string(text)
	}

	l.got = append(l.got, request.Method+" "+body)

	answer := httptest.NewRecorder()
	if len(l.got) <= l.times {
		answer.WriteHeader(http.StatusInternalServerError)
		_, _ = answer.WriteString(l.says)
	} else {
		_, _ = answer.WriteString("done")
	}

	return answer.Result(), nil
}

// TestRequestsAreMadeUntilTheyAreStored: what etcd did not take in time is sent again, whole; any other failure is an answer.
func TestRequestsAreMadeUntilTheyAreStored(t *testing.T) {
	t.Parallel()

	const timeout = `{"kind":"Status","message":"etcdserver: request timed out","code":500}`

	for name, tc := range map[string]struct {
		late   late
		once   bool
		tries  int
		answer string
	}{
		"in time":          {late{}, false, 1, "done"},
		"late":             {late{times: 3, says: timeout}, false, 4, "done"},
		"always late":      {late{times: 100, says: timeout}, false, storeTries, timeout},
		"another failure":  {late{times: 100, says: "no"}, false, 1, "no"},
		"late, and a pipe": {late{times: 100, says: timeout}, true, 1, timeout},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://api/", bytes.NewReader([]byte("body")))
		if err != nil {
			t.Fatal(err)
		}

		if tc.once {
			request.GetBody = nil
		}

		response, err := untilStored(&tc.late).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}

		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()

		if want := strings.Repeat("PATCH body,", tc.tries); err != nil || string(text) != tc.answer ||
			strings.Join(tc.late.got, ",")+"," != want {
			t.Errorf("%s: the answer is %q (%v), to %v", name, text, err, tc.late.got)
		}
	}
}

// TestRequestsThatWereStoredTooLate: where etcd stored a write after it said that it was too late, the second try finds it done.
func TestRequestsThatWereStoredTooLate(t *testing.T) {
	t.Parallel()

	of := schema.GroupResource{Resource: "secrets"}
	late := storage{http.StatusInternalServerError, `{"kind":"Status","message":"etcdserver: request timed out","code":500}`}
	exists := says(t, apierrors.NewAlreadyExists(of, "a"))
	gone := says(t, apierrors.NewNotFound(of, "a"))
	object := storage{http.StatusOK, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`}

	for name, tc := range map[string]struct {
		method string
		says   []storage
		code   int
		asked  string
	}{
		"made late":             {http.MethodPost, []storage{late, exists, object}, 200, "POST /secrets,POST /secrets,GET /secrets/a"},
		"made by somebody else": {http.MethodPost, []storage{exists}, 409, "POST /secrets"},
		"deleted late":          {http.MethodDelete, []storage{late, gone}, 200, "DELETE /secrets,DELETE /secrets"},
		"never there":           {http.MethodDelete, []storage{gone}, 404, "DELETE /secrets"},
		"changed late":          {http.MethodPut, []storage{late, gone}, 404, "PUT /secrets,PUT /secrets"},
		"no word of the API":    {http.MethodPost, []storage{late, {409, "no"}}, 409, "POST /secrets,POST /secrets"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, "http://api/secrets", nil)
		if err != nil {
			t.Fatal(err)
		}

		asked := []string{}
		next := roundTrips(func(r *http.Request) *http.Response {
			answer := httptest.NewRecorder()
			answer.WriteHeader(tc.says[len(asked)].code)
			_, _ = answer.WriteString(tc.says[len(asked)].body)

			asked = append(asked, r.Method+" "+r.URL.Path)

			return answer.Result()
		})

		response, err := untilStored(next).RoundTrip(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()

		if err != nil || response.StatusCode != tc.code || strings.Join(asked, ",") != tc.asked {
			t.Errorf("%s: the answer is %d %q (%v), to %v", name, response.StatusCode, body, err, asked)
		}

		if strings.Contains(string(body), "Failure") != (tc.code == 404 || tc.code == 409 && string(body) != "no") {
			t.Errorf("%s: the answer with %d says %q", name, tc.code, body)
		}
	}
}

// storage is one answer of an API server.
type storage struct {
	code int
	body string
}

type roundTrips func(*http.Request) *http.Response

func (f roundTrips) RoundTrip(request *http.Request) (*http.Response, error) { return f(request), nil }

func says(t *testing.T, err *apierrors.StatusError) storage {
	t.Helper()

	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"

	body, failure := json.Marshal(status)
	if failure != nil {
		t.Fatal(failure)
	}

	return storage{int(status.Code), string(body)}
}
