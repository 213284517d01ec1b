package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/orphans"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// maxRounds bounds how often everything is reconciled. An upgrade takes a handful of rounds for each version on its way.
const maxRounds = 100

// Simulation runs the manager's reconcilers of OLM's kinds in a cluster in memory.
type Simulation struct {
	// AmbitNamespace is where Ambit runs. Writers says who writes there.
	AmbitNamespace string
	Writers        *writer.Manager
	// Ours says whether OLM's kinds are Ambit's to serve, and whether that is known.
	Ours func() (ours, known bool)
	// Confined is what is worked with where Ambit has rights in single namespaces alone; nil elsewhere.
	Confined *group.Confined
	// Kubernetes is the version of the API server.
	Kubernetes string
	// Ask asks what a user holds; OnlyRoles says that the roles and bindings in memory decide alone.
	Ask       Asker
	OnlyRoles bool

	cluster *Cluster
	// holds and roleOf say what users hold, and which role a binding refers to.
	holds   Asker
	roleOf  func(ref rbacv1.RoleRef, namespace string) client.Object
	indexes map[string]client.IndexerFunc
	asked   map[[2]string]answer
	// ahead is how far the clock of the simulation is ahead.
	ahead time.Duration
	queue *queue
	store *recorder

	mu sync.Mutex
	// lackingMu guards lacking, which is what users were found to lack since the last round began.
	lackingMu sync.Mutex
	lacking   map[string][]authority.Place
	// failed is what could not be asked.
	failed error
}

// New returns a simulation in a cluster. Its fields are set before it runs.
func New(c *Cluster) *Simulation {
	s := &Simulation{
		Writers: &writer.Manager{},
		cluster: c, asked: map[[2]string]answer{}, queue: &queue{waits: map[string]time.Duration{}}, store: &recorder{},
		indexes: map[string]client.IndexerFunc{group.ByAPI: group.APIs}, lacking: map[string][]authority.Place{},
		Ask:  func(_, _ string) ([]rbacv1.PolicyRule, bool, error) { return nil, true, nil },
		Ours: func() (bool, bool) { return false, false },
	}
	c.now, s.holds, s.roleOf = s.now, s.held, s.role

	return s
}

func (s *Simulation) now() time.Time { return time.Now().Add(s.ahead) }

// Run reconciles these namespaces, and those that have something to do because of them, until nothing is left to do. What failed
// in the end for a reason that is no answer of the cluster is its error.
func (s *Simulation) Run(ctx context.Context, namespaces []string) error {
	m := s.manager()
	// A manager that was there before knows which account the group of a namespace named.
	for namespace, account := range s.cluster.installers {
		m.groups.Remember(namespace, account)
	}

	all := map[string]struct{}{}
	for _, name := range namespaces {
		all[name] = struct{}{}
	}

	for range maxRounds {
		var failed error

		writes := s.cluster.writes
		s.lacking = map[string][]authority.Place{}

		for _, name := range slices.Sorted(maps.Keys(all)) {
			failed = errors.Join(failed, s.reconcile(ctx, m, name))
		}

		for _, name := range s.queue.namespaces() {
			all[name] = struct{}{}
		}

		if s.cluster.writes != writes {
			continue
		}

		// What waits for a time gets there at once.
		if wait := s.queue.longest(); wait > s.ahead {
			s.ahead = wait

			continue
		}

		return failed
	}

	return fmt.Errorf("nothing came to rest after %d rounds", maxRounds)
}

// manager are the reconcilers, with what they share.
type manager struct {
	groups   *group.Reconciler
	catalogs *catalog.Reconciler
}

func (s *Simulation) manager() *manager {
	ambit := &user{Simulation: s}

	dirty := changes.New()
	dirty.StartInstalls(s.queue)
	dirty.StartCatalogs(s.queue)

	applier := apply.Simulated(func(name string) client.Client { return &user{Simulation: s, name: name} }, s.store)
	applier.Now, applier.Lacking, applier.ReviewOwn = s.now, s.lack, s.Confined != nil

	metrics := report.NewMetrics(prometheus.NewRegistry())
	left := &orphans.Reporter{Recorder: silent{}, Metrics: metrics, Exists: func(string) bool { return false }}

	shared := generic.Shared{
		Applier: applier, Recorder: silent{}, Metrics: metrics, Changes: dirty, Orphans: left,
		AmbitNamespace: s.AmbitNamespace, Writers: s.Writers, Now: s.now,
	}

	return &manager{
		groups: &group.Reconciler{
			Shared: shared,
			Client: ambit, Cache: ambit, Mapper: s.cluster.mapper, Resources: discovered.New(s.cluster.mapper),
			Kubernetes: s.Kubernetes, Ours: s.Ours, Confined: s.Confined,
		},
		catalogs: &catalog.Reconciler{
			Shared: shared, Client: ambit, Cache: ambit, Live: ambit, Ours: func() bool { ours, _ := s.Ours(); return ours },
		},
	}
}

// reconcile calls the reconcilers for a namespace, each with records of what is there now.
func (s *Simulation) reconcile(ctx context.Context, m *manager, namespace string) error {
	var err error

	// No Subscription is served where Ambit has rights in single namespaces alone.
	if s.Confined == nil {
		m.catalogs.Store, m.catalogs.Watches = s.fill()
		_, err = m.catalogs.Reconcile(ctx, requestFor(scope.CatalogKey(namespace)))
	}

	m.groups.Store, m.groups.Watches = s.fill()
	_, groupErr := m.groups.Reconcile(ctx, requestFor(scope.InstallKey(namespace)))

	if err = errors.Join(err, groupErr, s.failed); err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}

	return nil
}

func requestFor(key string) reconcile.Request {
	out := reconcile.Request{}
	out.Name = key

	return out
}

// fill makes the records that the manager's watches would have of what is there now.
func (s *Simulation) fill() (*read.Store, *read.Watches) {
	s.mu.Lock()
	defer s.mu.Unlock()

	once := read.NewOnce(nil)

	for key, u := range s.cluster.objects {
		switch key.Kind.Kind {
		case "OperatorGroup", "ClusterServiceVersion":
			once.Install(key.Namespace)
		case "CatalogSource":
			if name, _, _ := unstructured.NestedString(u.Object, "spec", "configMap"); name != "" {
				once.Catalog(key.Namespace, name)
			}
		}
	}

	for _, u := range s.cluster.objects {
		if !isRecorded(u.GroupVersionKind()) {
			continue
		}

		made, err := s.cluster.scheme.New(u.GroupVersionKind())
		if err != nil {
			continue
		}

		obj, is := made.(client.Object)
		if is && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj) == nil {
			once.Add(obj)
		}
	}

	s.store.Store = once.Store()

	if s.Confined != nil {
		return s.store.Store, read.NewNarrowOnce(s.store.Store, s.mayRead)
	}

	return s.store.Store, read.NewWatches(s.store.Store, nil, false)
}

// isRecorded says whether the manager keeps records of a kind, instead of reading it from its cache.
func isRecorded(gvk schema.GroupVersionKind) bool {
	switch gvk.Group {
	case "", "apps", rbacv1.GroupName, admissionv1.GroupName:
		return true
	default:
		return false
	}
}

// lack notes what a user lacks.
func (s *Simulation) lack(name string, missing []authority.Place) {
	s.lackingMu.Lock()
	defer s.lackingMu.Unlock()

	s.lacking[name] = authority.Places(append(s.lacking[name], missing...))
}

// Lacking is what each user lacked in the end, by their name.
func (s *Simulation) Lacking() map[string][]authority.Place { return s.lacking }

// recorder hands what was written to the records of now. What may be done can have changed at any time.
type recorder struct{ *read.Store }

// PermissionsChangedAt is now.
func (*recorder) PermissionsChangedAt(string) time.Time { return time.Now() }

var _ apply.Recorder = (*recorder)(nil)

// silent notifies nobody of events.
type silent struct{}

// Eventf does nothing.
func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
