package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

const (
	// ambitNamespace is where Ambit would run, and ambitUser as whom.
	ambitNamespace = "ambit-system"
	ambitUser      = "system:serviceaccount:ambit-system:ambit"
	// restartInterval is so long that no case sees the end of one.
	restartInterval = time.Hour
)

// plane is a manager with its caches, its store and its watches, whose controllers call nothing. The reconcilers that they would
// call are called by the cases.
type plane struct {
	manager manager.Manager
	client  client.WithWatch

	scopes    *namespacescope.Reconciler
	templates *template.Reconciler
	groups    *group.Reconciler
	catalogs  *catalog.Reconciler
	registry  *prometheus.Registry

	asked *asked
	// single is held by a case that reconciles what has no namespace, since all of that is one request.
	single sync.Mutex

	cancel context.CancelFunc
	ended  chan error
}

// settings are those of the profiles that write as Ambit, or as delegates only.
func settings(profile string) controllers.Settings {
	return controllers.Settings{
		Namespace: ambitNamespace, User: ambitUser, RestartInterval: restartInterval, FinishGrace: time.Hour,
		NeedDelegate: profile == "delegated", Writes: 8, OperatorGroups: read.ServeAlways, Remembered: controllers.NewRemembered(),
	}
}

// planeOf starts the manager of a profile at the first call.
func planeOf(t *testing.T, profile string) *plane {
	t.Helper()

	planes.Lock()
	defer planes.Unlock()

	if p, begun := planes.by[profile]; begun {
		if p == nil {
			t.Fatal("the manager could not be started; see the first case")
		}

		return p
	}

	planes.by[profile] = nil

	testcluster.InstallCRDs(t, apiServer)

	p, err := startPlane(settings(profile))
	if err != nil {
		t.Fatalf("starting a manager: %v", err)
	}

	planes.by[profile] = p

	return p
}

func startPlane(s controllers.Settings) (*plane, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}

	p := &plane{ended: make(chan error, 1), asked: newAsked()}

	if p.client, err = client.NewWithWatch(apiServer, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel

	if err := p.prepare(ctx); err != nil {
		return nil, err
	}

	if err := p.defineWidgets(ctx); err != nil {
		return nil, err
	}

	as := rest.CopyConfig(apiServer)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: ambitUser, Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	as.Wrap(noteWrites)

	if s.Names, err = controllers.LoadNames(ctx, as, s.Namespace); err != nil {
		return nil, err
	}

	// Each manager registers metrics of the same names.
	p.registry = prometheus.NewRegistry()
	metrics.Registry = p.registry

	p.manager, err = ctrl.NewManager(as, manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Cache: controllers.Cache(s), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}

	return p, p.start(ctx, s)
}

// prepare makes what Ambit has where it is installed: its namespace and its rights.
func (p *plane) prepare(ctx context.Context) error {
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ambitNamespace}},
		testbed.Account(ambitNamespace, "ambit"),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "ambit"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ambitNamespace, Name: "ambit"}},
		},
	} {
		if err := p.client.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}

	return nil
}

// start starts the manager, and takes the reconcilers from its controllers, which call nothing from then on.
func (p *plane) start(ctx context.Context, s controllers.Settings) error {
	probe := scope.NamespaceScopes.In("nobody")
	begun, taken := make(chan struct{}), make(chan changes.Reconciler, 4)

	var once sync.Once

	err := controllers.AddWrapped(p.manager, s, func(_ scope.Family, r changes.Reconciler) changes.Reconciler {
		taken <- r

		return changes.ReconcilerFunc(func(_ context.Context, key scope.Key) (reconcile.Result, error) {
			p.asked.note(key)

			if key == probe {
				once.Do(func() { close(begun) })
			}

			return reconcile.Result{}, nil
		})
	})
	if err != nil {
		return err
	}

	go func() { p.ended <- p.manager.Start(ctx) }()

	patience := time.After(testbed.Patience)

	for range 4 {
		select {
		case r := <-taken:
			p.take(r)
		case err := <-p.ended:
			return fmt.Errorf("the manager ended: %w", err)
		case <-patience:
			return errors.New("not every controller was added")
		}
	}

	// From the first request on, the controller has handed over its queue, and another one can take its place.
	p.scopes.Changes.KeyChanged(probe)

	select {
	case <-begun:
		p.scopes.Changes.Start(scope.NamespaceScopes, p.asked)
	case err := <-p.ended:
		return fmt.Errorf("the manager ended: %w", err)
	case <-patience:
		return errors.New("the controller of scopes did not begin")
	}

	return until(ctx, func() bool { return p.scopes.Watches.Listed() == nil })
}

func (p *plane) take(r changes.Reconciler) {
	switch r := r.(type) {
	case *namespacescope.Reconciler:
		p.scopes = r
		// A machine under load is no case: whatever takes long is waited for.
		p.scopes.Finder.Patience, p.scopes.Applier.Late = time.Minute, nil
	case *template.Reconciler:
		p.templates = r
	case *group.Reconciler:
		p.groups = r
	case *catalog.Reconciler:
		p.catalogs = r
	}
}

func (p *plane) stop() {
	if p == nil {
		return
	}

	p.cancel()

	if err := <-p.ended; err != nil {
		fmt.Fprintln(os.Stderr, "the manager ended:", err)
	}
}

// asked notes which changes ask for a plan, and for when one was asked for although nothing changes.
type asked struct {
	changes.Queue

	mu      sync.Mutex
	waits   map[scope.Key]time.Duration
	changed map[scope.Key]bool
}

func newAsked() *asked {
	return &asked{waits: map[scope.Key]time.Duration{}, changed: map[scope.Key]bool{}}
}

// Forget does nothing: nothing fails here that would have to be counted.
func (*asked) Forget(scope.Key) {}

// coalesced and debounced are for how long package changes has a change wait for others.
const (
	coalesced = 10 * time.Millisecond
	debounced = time.Second
)

// AddAfter notes a change, or the longest wait.
func (a *asked) AddAfter(key scope.Key, wait time.Duration) {
	// What changes is planned in a moment, which is of no interest: the case calls Reconcile when it likes.
	if wait == coalesced || wait == debounced {
		a.note(key)

		return
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	a.waits[key] = max(a.waits[key], wait)
}

// note notes that a change asks for a plan.
func (a *asked) note(key scope.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.changed[key] = true
}

// take returns the longest wait that was asked for since the last call.
func (a *asked) take(key scope.Key) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()

	wait := a.waits[key]
	delete(a.waits, key)

	return wait
}

// takeChange says whether a change asked for a plan since the last call.
func (a *asked) takeChange(key scope.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	changed := a.changed[key]
	delete(a.changed, key)

	return changed
}
