package report

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// barePod is the kind of a reader that no workload makes.
const barePod = "Pod"

// Metrics are Ambit's Prometheus metrics.
type Metrics struct {
	members *prometheus.GaugeVec
	objects *prometheus.GaugeVec
	failing *prometheus.GaugeVec
	unready *prometheus.GaugeVec
	// orphans has no labels: those who write such objects by hand could invent as many as they like.
	orphans    prometheus.Gauge
	missing    *prometheus.GaugeVec
	writes     *prometheus.CounterVec
	failures   *prometheus.CounterVec
	restarts   *prometheus.CounterVec
	injections prometheus.Counter
	effective  prometheus.Histogram

	mu sync.Mutex
	// scopes are those of each namespace for which something is recorded.
	scopes map[string]map[string]struct{}
}

// NewMetrics registers Ambit's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	scopeLabels := []string{"namespace", "scope"}
	m := &Metrics{
		scopes: map[string]map[string]struct{}{},
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ambit_scope_members",
			Help: "Members that the watch list names because of a scope, or in which everything of a ScopeInstance is bound.",
		}, scopeLabels),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ambit_scope_failed_members", Help: "Members of a scope that are not fully served.",
		}, scopeLabels),
		unready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ambit_scope_unready", Help: "1 for each scope that is not Ready, and 0 for the others.",
		}, scopeLabels),
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ambit_projected_objects", Help: "Roles and bindings that exist for the scopes of a namespace.",
		}, []string{"namespace", "controller"}),
		orphans: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ambit_orphaned_objects",
			Help: "Roles and bindings of scopes that are gone without having cleaned up, which could not be deleted and grant something.",
		}),
		missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ambit_missing_kinds", Help: "1 for each kind that is not served because its CustomResourceDefinition is missing.",
		}, []string{"definition"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ambit_writes_total",
			Help: "Projected objects, watch lists, InstallPlans and what these install, written, by what became of them.",
			// The label was called "fate" in the first releases, and is there by that name for one more.
		}, []string{"result", "fate"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ambit_failures_total", Help: "Writes that failed, by the reason shown in status.",
		}, []string{"reason"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ambit_restarts_total", Help: "Readers of a watch list that were restarted, by kind.",
		}, []string{"kind"}),
		injections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ambit_injections_total",
			Help: "Writes into workloads, ClusterServiceVersions and webhook configurations of others, to inject or take back.",
		}),
		effective: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ambit_change_to_effect_seconds",
			Help:    "Time from the watch event of a change to the end of the writes that it led to.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300},
		}),
	}
	r.MustRegister(m.members, m.failing, m.unready, m.objects, m.orphans, m.missing, m.writes, m.failures, m.restarts, m.injections,
		m.effective)

	// A series that begins with its first failure, write or restart shows no increase at all.
	for _, result := range []apply.Result{apply.Created, apply.Configured, apply.Unchanged, apply.Deleted} {
		m.writes.WithLabelValues(string(result), string(result))
	}

	for i := range facts.WorkloadTypes {
		if t := &facts.WorkloadTypes[i]; t.Restart != facts.NoRestart {
			m.restarts.WithLabelValues(string(t.Kind))
		}
	}

	m.restarts.WithLabelValues(barePod)

	for _, reason := range []string{
		MemberUnauthorized, MemberNameClash, MemberTerminating, MemberNotRevoked, MemberRefused, MemberTemporaryError,
		ReasonWatchListFailed, ReasonInjectionFailed, EventInstallComponentFailed, EventRestartFailed,
	} {
		m.failures.WithLabelValues(reason)
	}

	return m
}

// Scope records what the status of a scope says.
func (m *Metrics) Scope(namespace, name string, served, failed int, isReady bool) {
	m.members.WithLabelValues(namespace, name).Set(float64(served))
	m.failing.WithLabelValues(namespace, name).Set(float64(failed))

	unready := m.unready.WithLabelValues(namespace, name)
	if unready.Set(1); isReady {
		unready.Set(0)
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.scopes[namespace] == nil {
		m.scopes[namespace] = map[string]struct{}{}
	}

	m.scopes[namespace][name] = struct{}{}
}

// Only drops what was recorded for scopes of a namespace that are not among these: they are gone, however they went.
func (m *Metrics) Only(namespace string, names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	there := slices.Sorted(slices.Values(names))

	for name := range m.scopes[namespace] {
		if _, is := slices.BinarySearch(there, name); is {
			continue
		}

		m.members.DeleteLabelValues(namespace, name)
		m.failing.DeleteLabelValues(namespace, name)
		m.unready.DeleteLabelValues(namespace, name)
		delete(m.scopes[namespace], name)
	}

	if len(m.scopes[namespace]) == 0 {
		delete(m.scopes, namespace)
	}
}

// Missing records whether a kind is missing, by the name of its CustomResourceDefinition.
func (m *Metrics) Missing(definition string, missing bool) {
	if missing {
		m.missing.WithLabelValues(definition).Set(1)
	} else {
		m.missing.DeleteLabelValues(definition)
	}
}

// result counts one write, or its failure by a reason.
func (m *Metrics) result(o *apply.WriteOutcome, reason string) {
	if o.Err != nil {
		m.failures.WithLabelValues(reason).Inc()
	} else if o.Result != apply.Unchanged {
		m.writes.WithLabelValues(string(o.Result), string(o.Result)).Inc()
	}
}

// Applied records what applying a plan did. firstEvent is when Ambit first heard of what led to it; zero when unknown.
func (m *Metrics) Applied(p *plan.Plan, out *apply.Outcome, objects int, firstEvent time.Time) {
	namespace, controller := p.Key.Namespace, p.Key.Family.String()
	if objects == 0 {
		m.objects.DeleteLabelValues(namespace, controller)
	} else {
		m.objects.WithLabelValues(namespace, controller).Set(float64(objects))
	}

	for i := range out.Scopes {
		m.scope(&out.Scopes[i])
	}

	m.scope(&out.Orphans)

	for i := range out.Lists {
		m.result(&out.Lists[i].WriteOutcome, ReasonWatchListFailed)
	}

	for _, i := range slices.Concat(out.Injections, out.Webhooks) {
		switch {
		case i.Err != nil:
			m.failures.WithLabelValues(ReasonInjectionFailed).Inc()
		case i.Result == apply.Configured:
			m.injections.Inc()
		}
	}

	for i := range out.Objects {
		m.result(&out.Objects[i], EventInstallComponentFailed)
	}

	for i := range out.Restarts {
		switch o := &out.Restarts[i]; {
		case o.Err != nil:
			m.failures.WithLabelValues(EventRestartFailed).Inc()
		case o.Result != apply.Unchanged:
			m.restarted(&p.Restarts[i])
		}
	}

	for i := range out.Late {
		if l := &out.Late[i]; l.Restart != nil {
			m.restarted(l.Restart)
		} else {
			m.injections.Inc()
		}
	}

	if !firstEvent.IsZero() && out.Wrote() {
		m.effective.Observe(time.Since(firstEvent).Seconds())
	}
}

func (m *Metrics) restarted(r *plan.Restart) {
	if r.Quiet {
		return
	}

	m.restarts.WithLabelValues(cmp.Or(string(r.Workload.Kind), barePod)).Inc()
}

func (m *Metrics) scope(out *apply.ScopeOutcome) {
	for result, n := range out.Results {
		if result != apply.Failed {
			m.writes.WithLabelValues(string(result), string(result)).Add(float64(n))
		}
	}

	for i := range out.Failures {
		m.failures.WithLabelValues(reasonOf(&out.Failures[i])).Inc()
	}
}
