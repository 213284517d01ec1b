package embedded

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// storeTries is how often a request is made until etcd takes it in time.
	storeTries = 5
	// notInTime is what etcd says after five seconds and a half (ReqTimeout in go.etcd.io/etcd/server/v3/config/config.go). On a
	// machine whose disk others keep busy, a write of one cluster may stand still for longer.
	notInTime = "etcdserver: request timed out"
)

// untilStored makes requests again that etcd did not take in time, as whoever works on a cluster does. A test has nothing to say
// about that.
func untilStored(next http.RoundTripper) http.RoundTripper { return &stored{next} }

type stored struct{ next http.RoundTripper }

// RoundTrip makes a request. One that cannot be sent twice is made once.
func (s *stored) RoundTrip(request *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := s.next.RoundTrip(request)
		if err != nil {
			return nil, err //nolint:wrapcheck // The caller knows it by its type.
		}

		if wasInTime, err := inTime(response); wasInTime || err != nil || try == storeTries {
			return response, err
		}

		if request = again(request); request == nil {
			return response, nil
		}
	}
}

// inTime says whether etcd took a request in time. The body can be read after that.
func inTime(response *http.Response) (bool, error) {
	if response.StatusCode != http.StatusInternalServerError {
		return true, nil
	}

	body, err := io.ReadAll(response.Body)
	if _ = response.Body.Close(); err != nil {
		return false, fmt.Errorf("reading what the API server says of a failure: %w", err)
	}

	response.Body = io.NopCloser(bytes.NewReader(body))

	return !strings.Contains(string(body), notInTime), nil
}

// again is the same request with its body from the beginning; nil where that is gone.
func again(request *http.Request) *http.Request {
	out := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return out
	}

	if request.GetBody == nil {
		return nil
	}

	var err error
	if out.Body, err = request.GetBody(); err != nil {
		return nil
	}

	return out
}
