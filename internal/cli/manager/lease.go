package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the Lease by which replicas agree on who works.
const leaseName = "ambit-manager"

// renewWithin is how long a replica continues without having renewed its lease; another one takes over after lease. By then,
// every request that the first one had sent has arrived.
const (
	renewWithin = 10 * time.Second
	lease       = 15 * time.Second
)

// dialTimeout bounds how long it takes to connect, and says how often an idle connection is probed; as in client-go
// (transport/cache.go).
const dialTimeout = 30 * time.Second

var errLeaseLost = errors.New("nothing is written: this replica has not renewed its lease, and another one may work by now")

// lock is the lease by which replicas agree on who works, and keeps a replica that may have lost it from writing. A process that
// was stopped for a while, for example with its machine, continues in the middle of a plan that it made before, and learns only
// after that plan that it lost its lease. It would give back what another replica took away meanwhile.
type lock struct {
	resourcelock.Interface

	now func() time.Time
	// check is asked before the lease is taken for the first time; with an error it is not taken. It may be nil.
	check func(context.Context) error

	mu sync.Mutex
	// renewed is when the request began by which the lease was taken or renewed last; zero before it was taken.
	renewed  time.Time
	released bool
}

// newLock returns the lease of a namespace. check is asked before one begins, and wentBack called when the lease is older than it
// was.
func newLock(config *rest.Config, namespace string, check func(context.Context) error, wentBack func()) (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("looking for the name of this host: %w", err)
	}

	on, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config, renewWithin)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease: %w", err)
	}

	held, is := on.(*resourcelock.LeaseLock)
	if !is {
		return nil, fmt.Errorf("preparing the lease: it is a %T, of which the version cannot be seen", on)
	}

	held.Client = &versioned{LeasesGetter: held.Client, wentBack: wentBack}

	return &lock{Interface: on, now: time.Now, check: check}, nil
}

// Create takes the lease.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.take(ctx, r, l.Interface.Create)
}

// Update takes the lease, renews it, or gives it back.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.take(ctx, r, l.Interface.Update)
}

func (l *lock) take(
	ctx context.Context, r resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if l.check != nil && !l.began() {
		if err := l.check(ctx); err != nil {
			return err
		}
	}

	began := l.now()

	if err := write(ctx, r); err != nil {
		return err // As it is: the election tells the API server's errors apart.
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.renewed, l.released = began, r.HolderIdentity != l.Identity()

	return nil
}

// began says whether this replica has ever had the lease.
func (l *lock) began() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return !l.renewed.IsZero()
}

// holds says whether no other replica can work yet. The monotonic clock may stand still with the machine, so the wall clock
// counts as well. Before the lease was taken for the first time, every write passes: a replica that stands by writes for no
// scope.
func (l *lock) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := l.now()

	return l.renewed.IsZero() ||
		!l.released && max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0))) < renewWithin
}

// Fence makes all clients of a config refuse to write once the lease may be lost. A request that was let pass may still wait in
// its client while the process is stopped, so the connections send nothing more after that, either.
func (l *lock) Fence(config *rest.Config) {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext
	}

	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		return &fencedConn{Conn: conn, lock: l}, nil
	}

	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fenced{next: next, lock: l} })
}

// fencedConn sends nothing once the lease may be lost, not even a request that was let pass before.
type fencedConn struct {
	net.Conn

	lock *lock
}

// Write sends bytes. Once the lease may be lost, it fails with errLeaseLost: the bytes may belong to a write.
func (c *fencedConn) Write(p []byte) (int, error) {
	if !c.lock.holds() {
		return 0, errLeaseLost
	}

	return c.Conn.Write(p) //nolint:wrapcheck // It stands in for that one.
}

type fenced struct {
	next http.RoundTripper
	lock *lock
}

// RoundTrip sends a request, unless it would write and the lease may be lost.
func (f *fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || f.lock.holds() {
		return f.next.RoundTrip(r) //nolint:wrapcheck // It stands in for that one.
	}

	if r.Body != nil {
		_ = r.Body.Close() // A RoundTripper closes the body even if it sends nothing.
	}

	return nil, errLeaseLost
}
