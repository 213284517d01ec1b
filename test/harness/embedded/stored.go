package embedded

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// storeTries is how often a request is made until etcd takes it in time.
	storeTries = 5
	// notInTime is what etcd says after five seconds and a half (ReqTimeout in go.etcd.io/etcd/server/v3/config/config.go). On a
	// machine whose disk others keep busy, a write of one cluster may stand still for longer.
	notInTime = "etcdserver: request timed out"
)

// untilStored makes requests again that etcd did not take in time, as whoever works on a cluster does. A test has nothing to say
// about that. Some were stored all the same, a moment too late for an answer: what was to be made exists then, and what was to be
// deleted is gone.
func untilStored(next http.RoundTripper) http.RoundTripper { return &stored{next} }

type stored struct{ next http.RoundTripper }

// RoundTrip makes a request. One that cannot be sent twice is made once.
func (s *stored) RoundTrip(request *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := s.next.RoundTrip(request)
		if err != nil {
			return nil, err //nolint:wrapcheck // The caller knows it by its type.
		}

		wasInTime, err := inTime(response)
		if wasInTime && err == nil && try > 1 {
			return s.stored(request, response)
		}

		if wasInTime || err != nil || try == storeTries {
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

	body, err := whole(response)

	return !strings.Contains(string(body), notInTime), err
}

// whole is the body of an answer, which can be read again after that.
func whole(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(response.Body)
	if _ = response.Body.Close(); err != nil {
		return nil, fmt.Errorf("reading what the API server says of a failure: %w", err)
	}

	response.Body = io.NopCloser(bytes.NewReader(body))

	return body, nil
}

// stored answers a request that was made again as it would have been the first time.
func (s *stored) stored(request *http.Request, response *http.Response) (*http.Response, error) {
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}

	body, err := whole(response)
	if err != nil {
		return nil, err
	}

	said, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return response, nil //nolint:nilerr // It is no status of the API server, and is the answer as it is.
	}

	failure := apierrors.FromObject(said)

	switch {
	case request.Method == http.MethodDelete && apierrors.IsNotFound(failure):
		response.StatusCode, response.Body, response.ContentLength = http.StatusOK, http.NoBody, 0
	case request.Method == http.MethodPost && apierrors.IsAlreadyExists(failure):
		return s.get(request, said)
	}

	return response, nil
}

// get reads what a request was to make, whose name the API server's refusal has.
func (s *stored) get(request *http.Request, refusal runtime.Object) (*http.Response, error) {
	status, ok := refusal.(*metav1.Status)
	if !ok || status.Details == nil {
		return nil, fmt.Errorf("what exists already at %s has no name", request.URL.Path)
	}

	read := request.Clone(request.Context())
	read.Method, read.Body, read.GetBody, read.ContentLength = http.MethodGet, nil, nil, 0
	read.URL.Path, read.URL.RawQuery = read.URL.Path+"/"+status.Details.Name, ""

	return s.next.RoundTrip(read) //nolint:wrapcheck // The caller knows it by its type.
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
