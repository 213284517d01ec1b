package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestProjectedObjectsAreOfANamespace: the label is the name of a namespace, whatever the objects are for.
func TestProjectedObjectsAreOfANamespace(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		key                   scope.Key
		namespace, controller string
	}{
		"scopes":    {scope.NamespaceScopes.In("ops"), "ops", "namespacescope"},
		"installs":  {scope.Installs.In("ops"), "ops", "operatorgroup"},
		"templates": {scope.TemplatesKey(), "(cluster)", "template"},
	} {
		registry := prometheus.NewRegistry()
		metrics := report.NewMetrics(registry)
		metrics.Applied(&plan.Plan{Key: tc.key}, &apply.Outcome{}, 3, time.Time{})

		labels := "controller=" + tc.controller + " namespace=" + tc.namespace
		if got := values(t, registry, "ambit_projected_objects"); len(got) != 1 || got[labels] != 3 {
			t.Errorf("%s: %v", reason, got)
		}

		metrics.Applied(&plan.Plan{Key: tc.key}, &apply.Outcome{}, 0, time.Time{})

		if got := values(t, registry, "ambit_projected_objects"); len(got) != 0 {
			t.Errorf("%s: none is left, and there is still %v", reason, got)
		}
	}
}

// values are those of a gauge or a counter, by its labels.
func values(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()

	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]float64{}

	for _, family := range all {
		if family.GetName() != name {
			continue
		}

		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}

			out[strings.Join(labels, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue() // One of them is not there.
		}
	}

	return out
}

// TestWhatCameLateIsCounted: a restart, or an injection, of an earlier plan counts once its answer has come; one by which nothing
// begins again does not.
func TestWhatCameLateIsCounted(t *testing.T) {
	t.Parallel()

	registry := prometheus.NewRegistry()
	metrics := report.NewMetrics(registry)
	late := []apply.LateWrite{
		{Restart: &plan.Restart{Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "w"}}},
		{Restart: &plan.Restart{Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: "marks"}, Quiet: true}},
		{Target: "Deployment w"},
	}
	metrics.Applied(&plan.Plan{Key: scope.NamespaceScopes.In("ops")}, &apply.Outcome{Late: late}, 0, time.Time{})

	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]float64{}

	for _, family := range all {
		for _, m := range family.GetMetric() {
			got[family.GetName()] += m.GetCounter().GetValue()
		}
	}

	if got["ambit_restarts_total"] != 1 || got["ambit_injections_total"] != 1 {
		t.Errorf("got %v, want one of each", got)
	}
}

// TestTheFirstWriteIsAnIncrease: so is the first write, and the first restart of each kind.
func TestTheFirstWriteIsAnIncrease(t *testing.T) {
	t.Parallel()

	registry := prometheus.NewRegistry()
	metrics := report.NewMetrics(registry)
	of := func() (all []map[string]float64) {
		for _, name := range []string{"ambit_writes_total", "ambit_restarts_total"} {
			all = append(all, values(t, registry, name))
		}

		return all
	}
	before := of()

	p, out := &plan.Plan{Key: scope.NamespaceScopes.In("ops")}, &apply.Outcome{}
	out.Orphans.Results = map[apply.Result]int{apply.Created: 1, apply.Configured: 1, apply.Unchanged: 1, apply.Deleted: 1}

	for _, kind := range []facts.WorkloadKind{facts.Deployment, facts.StatefulSet, facts.DaemonSet, facts.ReplicaSet, ""} {
		p.Restarts = append(p.Restarts, plan.Restart{Workload: facts.WorkloadRef{Kind: kind}})
		out.Restarts = append(out.Restarts, apply.WriteOutcome{Result: apply.Configured})
	}

	metrics.Applied(p, out, 0, time.Time{})

	for i, counts := range of() {
		for labels, count := range counts {
			if was, found := before[i][labels]; !found || was != 0 || count != 1 {
				t.Errorf("%s was %v, %t, and is %v", labels, was, found, count)
			}
		}
	}
}

// TestTheFirstFailureIsAnIncrease: whoever alerts on an increase learns of a failure that happens once, since each reason is
// counted from the start.
func TestTheFirstFailureIsAnIncrease(t *testing.T) {
	t.Parallel()

	registry := prometheus.NewRegistry()
	metrics := report.NewMetrics(registry)
	before := values(t, registry, "ambit_failures_total")

	write := &plan.Change{Action: plan.Create}
	failed := apply.WriteOutcome{Result: apply.Failed, Err: apply.ErrNameClash}
	out := &apply.Outcome{
		Objects: []apply.WriteOutcome{failed}, Lists: []apply.ListOutcome{{WriteOutcome: failed}},
		Injections: []apply.WriteOutcome{failed}, Restarts: []apply.WriteOutcome{failed},
		Orphans: apply.ScopeOutcome{Failures: []apply.Failure{
			{Change: write, Err: apply.ErrNoIdentity}, {Change: write, Err: apply.ErrNameClash}, {Change: write, Class: apply.Gone},
			{Change: write, Class: apply.Refused}, {Change: write}, {Change: &plan.Change{Action: plan.Delete}},
		}},
	}
	metrics.Applied(&plan.Plan{Key: scope.NamespaceScopes.In("ops")}, out, 0, time.Time{})

	for reason, count := range values(t, registry, "ambit_failures_total") {
		if was, found := before[reason]; !found || was != 0 || count != 1 {
			t.Errorf("%s was %v, %t, and is %v", reason, was, found, count)
		}
	}
}
