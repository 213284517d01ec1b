package controllers

import (
	"net/http"
	"sync/atomic"
)

// answers hears from requests when the API server answers again after it did not: whatever failed meanwhile need not wait for its
// next try, which is as far away as the API server was down.
type answers struct {
	again func()
	// silent says that the last request which ended had no answer.
	silent atomic.Bool
}

// through makes requests by next, and calls again, which must not wait for any of them.
func (a *answers) through(next http.RoundTripper) http.RoundTripper {
	return &answered{answers: a, next: next}
}

type answered struct {
	answers *answers
	next    http.RoundTripper
}

// RoundTrip makes a request. One that whoever asked gave up says nothing of the API server; nor does an answer that it is not
// able to: an admission webhook could be behind that.
func (a *answered) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)

	switch {
	case err != nil:
		if request.Context().Err() == nil {
			a.answers.silent.Store(true)
		}
	case response.StatusCode < http.StatusInternalServerError && a.answers.silent.CompareAndSwap(true, false):
		a.answers.again()
	}

	return response, err //nolint:wrapcheck // It hands on what it is given.
}
