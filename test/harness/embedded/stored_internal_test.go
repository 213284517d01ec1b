package embedded

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
