package manager

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// paperLease is a lease that nobody else wants.
type paperLease struct {
	resourcelock.Interface

	err error
}

func (*paperLease) Identity() string { return "me" }

func (p *paperLease) Create(context.Context, resourcelock.LeaderElectionRecord) error { return p.err }

func (p *paperLease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return p.err }

type sent struct{ requests int }

func (s *sent) RoundTrip(*http.Request) (*http.Response, error) {
	s.requests++

	return &http.Response{}, nil
}

func TestWhoMayHaveLostItsLeaseWritesNothing(t *testing.T) {
	t.Parallel()

	var (
		start  = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		now    = start
		paper  = &paperLease{}
		held   = &lock{Interface: paper, now: func() time.Time { return now }}
		mine   = resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
		nobody = resourcelock.LeaderElectionRecord{}
		server = &sent{}
		config = &rest.Config{}
	)

	held.Fence(config)
	transport := config.WrapTransport(server)

	for _, step := range []struct {
		reason string
		at     time.Duration
		renew  *resourcelock.LeaderElectionRecord
		fails  error
		writes bool
	}{
		{reason: "one that stands by makes ready", at: 0, writes: true},
		{reason: "one that has just taken the lease works", at: time.Second, renew: &mine, writes: true},
		{reason: "and goes on until it should have renewed it", at: 10 * time.Second, writes: true},
		{reason: "but not after that, as when it was stopped", at: 11 * time.Second},
		{reason: "a renewal that failed is none", at: 12 * time.Second, renew: &mine, fails: errors.New("conflict")},
		{reason: "one that renewed it works", at: 13 * time.Second, renew: &mine, writes: true},
		{reason: "a clock that was put back proves nothing worse", at: 12 * time.Second, writes: true},
		{reason: "one that gave it back does not", at: 14 * time.Second, renew: &nobody},
	} {
		now, paper.err = start.Add(step.at), step.fails

		if step.renew != nil {
			if err := held.Update(t.Context(), *step.renew); !errors.Is(err, step.fails) {
				t.Fatal(err)
			}
		}

		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet} {
			request, err := http.NewRequestWithContext(t.Context(), method, "https://example.com/", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}

			before := server.requests
			response, err := transport.RoundTrip(request)

			if err == nil && response.Body != nil {
				_ = response.Body.Close()
			}

			want := step.writes || method == http.MethodGet
			if sent := server.requests > before; sent != want || (err == nil) != want || !want && !errors.Is(err, errLeaseLost) {
				t.Errorf("%s: %s is sent: %t, %v; want %t", step.reason, method, sent, err, want)
			}
		}
	}
}
