package manager

import (
	"context"
	"errors"
	"io"
	"net"
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

// TestWhatWasLetPassIsNotSentLater holds that a connection sends nothing once the lease may be lost: a request that passed the
// first check may have waited while the process was stopped.
func TestWhatWasLetPassIsNotSentLater(t *testing.T) {
	t.Parallel()

	var (
		now    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		held   = &lock{Interface: &paperLease{}, now: func() time.Time { return now }}
		config = &rest.Config{}
		here   net.Conn
		there  net.Conn
	)

	config.Dial = func(context.Context, string, string) (net.Conn, error) {
		here, there = net.Pipe()

		return here, nil
	}

	held.Fence(config)

	conn, err := config.Dial(t.Context(), "tcp", "example.com:443")
	if err != nil {
		t.Fatal(err)
	}

	if err := held.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
		t.Fatal(err)
	}

	go func() { _, _ = io.Copy(io.Discard, there) }()

	if n, err := conn.Write([]byte("a request")); err != nil || n == 0 {
		t.Errorf("one that holds the lease sends %d bytes: %v", n, err)
	}

	now = now.Add(renewWithin)

	if n, err := conn.Write([]byte("another")); !errors.Is(err, errLeaseLost) || n != 0 {
		t.Errorf("one that may have lost it sends %d bytes: %v", n, err)
	}

	if err := conn.Close(); err != nil {
		t.Error(err)
	}
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

// TestLeaseIsNotTakenAgainstTheCheck: what is asked before a replica works is asked until it has worked, and no more.
func TestLeaseIsNotTakenAgainstTheCheck(t *testing.T) {
	t.Parallel()

	var (
		asked int
		why   = errors.New("the key is another one")
		paper = &paperLease{}
		held  = &lock{Interface: paper, now: time.Now, check: func(context.Context) error { asked++; return why }}
		mine  = resourcelock.LeaderElectionRecord{HolderIdentity: paper.Identity()}
	)

	for _, take := range []func(context.Context, resourcelock.LeaderElectionRecord) error{held.Create, held.Update} {
		if err := take(t.Context(), mine); !errors.Is(err, why) || held.began() {
			t.Errorf("the lease was taken: %v", err)
		}
	}

	why = nil

	for range 3 {
		if err := held.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
	}

	if asked != 3 {
		t.Errorf("it was asked %d times, want 3", asked)
	}
}
