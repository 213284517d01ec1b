package page_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/page"
)

// fixture is a cluster that says what a test wants.
type fixture struct {
	// names are those of operators, each of which serves team-a.
	names []string
	asked atomic.Int64
	looks atomic.Int64

	mu       sync.Mutex
	services []overview.Service
	news     chan struct{}
	failure  error

	plan        *page.Plan
	planFailure error
}

func (f *fixture) Read(context.Context) (*page.Snapshot, error) {
	f.looks.Add(1)

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.failure != nil {
		return nil, f.failure
	}

	services := append([]overview.Service(nil), f.services...)
	for _, name := range f.names {
		services = append(services, service(name, "team-a", overview.Served))
	}

	scopes := []overview.Scope{{Name: "NamespaceScope ops/s", Group: "operator.ibm.com", Ready: "True", Reason: "Reconciled"}}

	return &page.Snapshot{Overview: overview.New(scopes, services, []string{"default"})}, nil
}

func service(operator, namespace string, state overview.State) overview.Service {
	return overview.Service{
		Operator: overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: operator}, Namespace: namespace,
		Scope: "NamespaceScope ops/s", State: state,
	}
}

// become changes the cluster and says so.
func (f *fixture) become(services ...overview.Service) {
	f.mu.Lock()
	f.services = services
	f.mu.Unlock()

	select {
	case f.channel() <- struct{}{}:
	default:
	}
}

func (f *fixture) fail(err error) {
	f.mu.Lock()
	f.failure = err
	f.mu.Unlock()

	select {
	case f.channel() <- struct{}{}:
	default:
	}
}

func (f *fixture) channel() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.news == nil {
		f.news = make(chan struct{}, 1)
	}

	return f.news
}

func (f *fixture) Wait(ctx context.Context) error {
	select {
	case <-f.channel():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fixture) Operators(_ context.Context, namespace string) (any, error) {
	f.asked.Add(1)

	if namespace == "gone" {
		return nil, fmt.Errorf("%w: namespace gone", page.ErrNotThere)
	}

	return map[string]string{"namespace": namespace}, nil
}

func (f *fixture) Why(_ context.Context, q *page.WhyQuestion) (any, error) {
	f.asked.Add(1)

	return q, nil
}

func (f *fixture) WhoCan(_ context.Context, q *page.WhoQuestion) (any, error) {
	f.asked.Add(1)

	return q, nil
}

func (f *fixture) People(_ context.Context, text string) (any, error) {
	f.asked.Add(1)

	return text, nil
}

func (f *fixture) Events(_ context.Context, scope string) ([]page.Event, error) {
	f.asked.Add(1)

	if scope == "NamespaceScope hidden/s" {
		return nil, fmt.Errorf("%w: events in namespace hidden", page.ErrMayNot)
	}

	return nil, nil
}

func (f *fixture) Plan(context.Context) (*page.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.plan, f.planFailure
}

// planned says what applying the files would change.
func (f *fixture) planned(p *page.Plan, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.plan, f.planFailure = p, err
}

func bodyOf(r *http.Response) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}

	return string(body)
}
