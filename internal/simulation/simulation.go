package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/controllers/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/controllers/template"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/waiting"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// maxRounds bounds how often everything is reconciled. An upgrade takes a handful of rounds for each version on its way.
const maxRounds = 100

// Simulation runs the manager's reconcilers in a cluster in memory.
type Simulation struct {
	// AmbitNamespace is where Ambit runs. Writers says who writes there.
	AmbitNamespace string
	Writers        *writer.Manager
	// Self is the user that Ambit itself is, where it may do no more than was granted to it; empty where it may do everything.
	Self string
	// RestartInterval is the least time between two restarts of one workload, and FollowGrace how long permissions stay in a
	// namespace that left, for readers that follow the list.
	RestartInterval, FollowGrace time.Duration
	// Ours says whether OLM's kinds are Ambit's to serve, and whether that is known.
	Ours func() (ours, known bool)
	// Confined is what OLM's kinds are worked with where Ambit has rights in single namespaces alone; nil elsewhere.
	Confined *group.Confined
	// Kubernetes is the version of the API server.
	Kubernetes string
	// Ask asks what a user holds, and HasRBAC says whether all roles and bindings that count in a namespace are in memory, or with
	// an empty one those of the cluster.
	Ask     Asker
	HasRBAC func(namespace string) bool
	// Looks is whoever looks on; nil where nobody does.
	Looks generic.Simulation

	cluster    *Cluster
	indexes    map[string]client.IndexerFunc
	everywhere *everywhere
	queue      queue
	applier    *apply.Applier
	// again is when there is something to do for a reconcile key although nothing changes.
	again map[scope.Key]time.Time

	mu sync.Mutex
	// lackingMu guards lacking, which is what users were found to lack when each reconcile key was last reconciled. key is the one
	// that is being reconciled.
	lackingMu sync.Mutex
	lacking   map[scope.Key]map[string][]authority.Place
	key       scope.Key
	// failed is what could not be asked.
	failed error
	// Unserved is, after a run, why reconcile keys could not be played forward: what they would do is unknown. TookIn says that an
	// operator that follows its list was taken to serve another one by now.
	Unserved map[scope.Key]error
	TookIn   bool
}

// New returns a simulation in a cluster. Its fields are set before it runs.
func New(c *Cluster) *Simulation {
	again := map[scope.Key]time.Time{}

	return &Simulation{
		Writers: &writer.Manager{}, cluster: c, again: again,
		queue:   queue{asked: map[scope.Key]struct{}{}, again: again, read: map[scope.Key]struct{}{}},
		indexes: group.Indexes(), lacking: map[scope.Key]map[string][]authority.Place{},
		Ask:     func(_, _ string) ([]rbacv1.PolicyRule, bool, error) { return nil, true, nil },
		HasRBAC: func(string) bool { return false },
		Ours:    func() (bool, bool) { return false, false },
	}
}

// Now is the clock.
func (s *Simulation) Now() time.Time { return s.cluster.now }

// Collected are the copies for scopes of a reconcile key that went with what authorized them, in no order.
func (s *Simulation) Collected(of scope.Key) []client.Object { return s.cluster.collected[of] }

// Run reconciles these keys, and those that have something to do because of them, until nothing is left to do. What could not be
// asked is its error; Unserved says what failed in the end for another reason that is no answer of the cluster.
func (s *Simulation) Run(ctx context.Context, keys []scope.Key) error {
	s.cluster.settle()
	s.queue.began = s.cluster.now

	m := s.manager()
	seen := map[scope.Key]int{}
	s.Unserved = map[scope.Key]error{}

	var restless map[scope.Key]error

	for _, key := range keys {
		s.queue.asked[key], s.queue.read[key] = struct{}{}, struct{}{}
	}

	for range maxRounds {
		atRest := true
		restless = map[scope.Key]error{}

		for _, key := range slices.SortedFunc(maps.Keys(s.queue.asked), scope.Key.Compare) {
			// Nothing changed since it was reconciled.
			if writes, known := seen[key]; known && writes == s.cluster.writes {
				continue
			}

			atRest, seen[key] = false, s.cluster.writes

			if delete(s.Unserved, key); ctx.Err() != nil {
				return fmt.Errorf("playing forward: %w", ctx.Err())
			}

			if err := s.reconcile(ctx, m, key); err != nil {
				s.Unserved[key] = err
			}

			if seen[key] != s.cluster.writes {
				restless[key] = fmt.Errorf("namespace %s: %w", key.Namespace, errRestless)
			}
		}

		if !atRest {
			continue
		}

		// Who follows a list takes it in before anybody waits for that in vain, and what waits for a time gets there at once.
		if !s.follow(seen) && !s.forward(seen) {
			return s.failed
		}
	}

	maps.Copy(s.Unserved, restless)

	return s.failed
}

// errRestless is about what is written again and again.
var errRestless = fmt.Errorf("it does not come to rest: something is written there again in each of %d rounds", maxRounds)

// follow has operators take in the lists that they follow, and says whether one did.
func (s *Simulation) follow(seen map[scope.Key]int) bool {
	namespaces := s.cluster.takeIn()
	for _, namespace := range namespaces {
		delete(seen, scope.NamespaceScopes.In(namespace))
	}

	s.TookIn = s.TookIn || len(namespaces) > 0

	return len(namespaces) > 0
}

// forward sets the clock to the last time that somebody waits for, and says whether there is one.
func (s *Simulation) forward(seen map[scope.Key]int) bool {
	began := s.cluster.now

	for key, at := range s.again {
		if at.After(began) {
			s.cluster.now = slices.MaxFunc([]time.Time{s.cluster.now, at}, time.Time.Compare)
			delete(seen, key)
		}
	}

	return s.cluster.now.After(began)
}

// Facts hands facts to whoever looks on.
func (s *Simulation) Facts(f *facts.Facts) {
	if s.Looks != nil {
		s.Looks.Facts(f)
	}
}

// Plan hands a plan to whoever looks on.
func (s *Simulation) Plan(p *plan.Plan) {
	if s.Looks != nil {
		s.Looks.Plan(p)
	}
}

// Applied notes when to plan again, and hands the outcome to whoever looks on.
func (s *Simulation) Applied(p *plan.Plan, f *facts.Facts, out *apply.Outcome) {
	s.again[p.Key] = s.applier.PlanAgain(p, f, out)

	if s.Looks != nil {
		s.Looks.Applied(p, f, out)
	}
}

// manager are the reconcilers, with what they share.
type manager struct {
	scopes    *namespacescope.Reconciler
	templates *template.Reconciler
	groups    *group.Reconciler
	catalogs  *catalog.Reconciler
}

func (s *Simulation) manager() *manager {
	own, store := &user{Simulation: s}, s.cluster.records.Store

	as := func(name string) client.Client { return &user{s, cmp.Or(name, s.Self), s.Writers.User} }
	s.applier = apply.Simulated(as, recorder{s.cluster})
	s.applier.Now, s.applier.Lacking, s.applier.ReviewOwn = s.Now, s.lack, s.Writers.IsConfined()

	heard, metrics := changes.New(), report.NewMetrics(prometheus.NewRegistry())
	heard.Start(scope.Installs, s.queue)
	heard.Start(scope.Catalogs, s.queue)

	shared := generic.Shared{
		Store: store, Watches: read.NewWatches(store, nil, false), Applier: s.applier, Metrics: metrics,
		Recorder: &events.FakeRecorder{}, // It throws events away.
		Changes:  heard, AmbitNamespace: s.AmbitNamespace, Writers: s.Writers, Now: s.Now, Simulation: s,
		IsClusterScoped: discovered.ByMapper(s.cluster.mapper),
	}
	m := &manager{templates: &template.Reconciler{
		Shared: shared, Client: own, IsMissing: func(client.Object) bool { return false },
	}}
	shared.Orphans = &report.OrphanReporter{
		Recorder: shared.Recorder, Metrics: metrics, Scheme: s.cluster.scheme, Exists: store.Exists, Namespaced: s.Writers.IsConfined(),
	}
	m.scopes = &namespacescope.Reconciler{
		Shared: shared, Client: own, Live: own, Quota: namespacescope.NewQuota(), RestartInterval: s.RestartInterval,
		FollowGrace: s.FollowGrace, Finder: &waiting.Finder{},
	}
	m.groups = &group.Reconciler{
		Shared: shared, Client: own, Cache: own, Serves: s.cluster.serves, Kubernetes: s.Kubernetes,
		Ours: s.Ours, Confined: s.Confined,
	}
	m.catalogs = &catalog.Reconciler{
		Shared: shared, Client: own, Cache: own, Live: own, Ours: func() bool { ours, _ := s.Ours(); return ours },
	}

	// A manager that was there before knows which account the group of a namespace named.
	for namespace, account := range s.cluster.installers {
		m.groups.Remember(namespace, account)
	}

	return m
}

func (s *Simulation) reconcile(ctx context.Context, m *manager, key scope.Key) error {
	var err error

	s.key = key
	delete(s.again, key)
	delete(s.lacking, key)
	s.cluster.touched, s.cluster.byScopes = map[Key]struct{}{}, isOfScopes(key)

	// Which others may be read for a namespace is found out anew for each reconcile.
	if s.Writers.IsConfined() {
		watches := read.NewNarrowOnce(s.cluster.records.Store, s.mayRead)
		m.scopes.Watches, m.groups.Watches = watches, watches
	}

	switch key.Family {
	case scope.NamespaceScopes:
		// Where a namespace has no scope any more, there is nothing left to do. What is left of scopes is found by watches.
		var has bool
		if has, err = namespacescope.HasWork(ctx, m.scopes.Client, key.Namespace); has && err == nil {
			_, err = m.scopes.Serve(ctx, key)
		}
	case scope.Templates:
		_, err = m.templates.Reconcile(ctx, key)
	case scope.Catalogs:
		s.cluster.attendCatalogs()

		_, err = m.catalogs.Reconcile(ctx, key)
	case scope.Installs:
		s.cluster.attend(key.Namespace)

		_, err = m.groups.Reconcile(ctx, key)
	}

	if err != nil {
		err = fmt.Errorf("namespace %s: %w", key.Namespace, err)
	}

	return err
}

// isOfScopes says whether a key is that of NamespaceScopes, ScopeTemplates or ScopeInstances, and of nothing that is installed.
func isOfScopes(key scope.Key) bool {
	return key.Family == scope.NamespaceScopes || key.Family == scope.Templates
}

func (s *Simulation) lack(name string, missing []authority.Place) {
	s.lackingMu.Lock()
	defer s.lackingMu.Unlock()

	if s.lacking[s.key] == nil {
		s.lacking[s.key] = map[string][]authority.Place{}
	}

	s.lacking[s.key][name] = append(s.lacking[s.key][name], missing...)
}

// Lacking is what each user lacked in the end for what is installed, by their name.
func (s *Simulation) Lacking() map[string][]authority.Place {
	out := map[string][]authority.Place{}

	for _, key := range slices.SortedFunc(maps.Keys(s.lacking), scope.Key.Compare) {
		if isOfScopes(key) {
			continue
		}

		for name, missing := range s.lacking[key] {
			out[name] = authority.Places(append(out[name], missing...))
		}
	}

	return out
}

// queue is where reconcilers ask for a plan, for another reconcile key or for later.
type queue struct {
	changes.Queue

	asked map[scope.Key]struct{}
	again map[scope.Key]time.Time
	began time.Time
	// read are the keys of which everything is in memory.
	read map[scope.Key]struct{}
}

// AddAfter notes a request. Whoever asks for the same wait again and again is served once.
//
// The manager plans more for operators than can change anything, such as for all that bring the same API. Those that were not
// read have nothing to do with what is planned (install.WithRivals), and what little of them is in memory would be taken for all.
func (q queue) AddAfter(key scope.Key, wait time.Duration) {
	if _, read := q.read[key]; !read && (key.Family == scope.Installs || key.Family == scope.Catalogs) {
		return
	}

	q.asked[key] = struct{}{}

	if at := q.began.Add(wait); at.After(q.again[key]) {
		q.again[key] = at
	}
}

// recorder records nothing, because the cluster updates the records itself.
type recorder struct{ *Cluster }

// Wrote does nothing, like the others.
func (recorder) Wrote(client.Object) {}

// Deleted does nothing.
func (recorder) Deleted(string, facts.ProjectedKey) {}

// DeletedConfigMap does nothing.
func (recorder) DeletedConfigMap(_, _ string) {}

// PermissionsChangedAt is when a Role or a binding was written.
func (r recorder) PermissionsChangedAt(namespace, _ string) time.Time {
	return slices.MaxFunc([]time.Time{r.permissionsAt[namespace], r.permissionsAt[""]}, time.Time.Compare)
}
