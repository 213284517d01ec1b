package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestOrphansAreReportedOnceAndCounted: a plan that is made again says nothing anew, what others forge says no more than its
// text, and the count is that of the whole cluster.
func TestOrphansAreReportedOnceAndCounted(t *testing.T) {
	t.Parallel()

	registry, recorder := prometheus.NewRegistry(), events.NewFakeRecorder(100)
	reporter := &report.OrphanReporter{Recorder: recorder, Metrics: report.NewMetrics(registry), Scheme: schemeOf(t),
		Exists: func(string) bool { return true }}

	told := func(key, owner, hash string, namespaces ...string) (said []string, count float64) {
		p, out := &plan.Plan{Key: scope.NamespaceScopes.In(key)}, &apply.Outcome{}
		out.Orphans.Nobody = "nobody knows whose they are"
		f := &facts.Facts{Projected: map[string]map[facts.ProjectedKey]*facts.Projected{}}

		for _, namespace := range namespaces {
			key := facts.ProjectedKey{Kind: projected.Role, Name: "r"}
			f.Projected[namespace] = map[facts.ProjectedKey]*facts.Projected{key: {Content: &facts.Content{Owner: owner, ScopeHash: hash}}}
			p.Orphans = append(p.Orphans, plan.Change{Action: plan.Delete, Namespace: namespace, Key: key})
		}

		reporter.Report(p, out, f)

		for len(recorder.Events) > 0 {
			said = append(said, <-recorder.Events)
		}

		return said, gauge(t, registry, "ambit_orphaned_objects")
	}

	owner := scope.Owner{Group: operatorv1.GroupVersion.Group, Kind: "NamespaceScope", Namespace: "ops", Name: "s"}
	hash := owner.Hash()

	for _, step := range []struct {
		reason string
		key    string
		owner  string
		in     []string
		events int
		count  float64
	}{
		{"where it was, and in both members", "ops", owner.String(), []string{"a", "b"}, 3, 2},
		{"the same again", "ops", owner.String(), []string{"a", "b"}, 0, 2},
		{"one of them was deleted", "ops", owner.String(), []string{"b"}, 0, 1},
		{"forged: no scope is called so", "other", "NamespaceScope/other/\x1b[2J\u009b", []string{"c"}, 1, 2},
		{"all is gone", "ops", owner.String(), nil, 0, 1},
		{"it came back", "ops", owner.String(), []string{"a"}, 2, 2},
	} {
		said, count := told(step.key, step.owner, hash, step.in...)
		if len(said) != step.events || count != step.count {
			t.Errorf("%s: %g objects, and said %q", step.reason, count, said)
		}

		for _, s := range said {
			if slices.ContainsFunc([]rune(s), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%s: it said %q", step.reason, s)
			}
		}
	}
}

// TestOrphansAreReportedInTheVersionOfTheirKind: an event about a version that a kind does not have is found by nobody who looks
// for those of the scope.
func TestOrphansAreReportedInTheVersionOfTheirKind(t *testing.T) {
	t.Parallel()

	known := schemeOf(t)

	for _, of := range []struct{ group, kind, want string }{
		{"operator.ibm.com", "NamespaceScope", "operator.ibm.com/v1"},
		{"namespacescope.ibm.com", "NamespaceScope", "namespacescope.ibm.com/v1alpha1"},
		{"operators.coreos.com", scope.KindCSV, "operators.coreos.com/v1alpha1"},
		{"operators.coreos.com", scope.KindGroup, "operators.coreos.com/v1"},
		{"operators.coreos.com", "ScopeInstance", "operators.coreos.com/v1alpha1"},
		{"operators.coreos.com", "NamespaceScope", ""},
		{"", "Pod", ""},
	} {
		recorder := events.NewFakeRecorder(1)
		recorder.Verbose = true
		reporter := &report.OrphanReporter{
			Recorder: recorder, Metrics: report.NewMetrics(prometheus.NewRegistry()), Scheme: known, Namespaced: true,
			Exists: func(string) bool { return true },
		}

		owner := scope.Owner{Group: of.group, Kind: of.kind, Namespace: "ops", Name: "s"}
		key := facts.ProjectedKey{Kind: projected.Role, Name: "r"}
		reporter.ReportLeft(
			&plan.Plan{Orphans: []plan.Change{{Action: plan.Delete, Namespace: "a", Key: key}}},
			&facts.Facts{Projected: map[string]map[facts.ProjectedKey]*facts.Projected{
				"a": {key: {Content: &facts.Content{Owner: owner.String(), ScopeHash: owner.Hash()}}},
			}},
		)

		said := ""
		if len(recorder.Events) > 0 {
			said = <-recorder.Events
		}

		if of.want == "" && said != "" || of.want != "" && !strings.Contains(said, "{kind="+of.kind+",apiVersion="+of.want+"}") {
			t.Errorf("%s of %s: said %q, want it about %q", of.kind, of.group, said, of.want)
		}
	}
}

// schemeOf is the manager's.
func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()

	s, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func gauge(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()

	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}

	t.Fatalf("there is no metric %s", name)

	return 0
}

// TestOrphansAreReportedOnceEmptied: who was told that something is still granted learns that it is not, and
// the metric that is alerted for no longer counts it.
func TestOrphansAreReportedOnceEmptied(t *testing.T) {
	t.Parallel()

	registry, recorder := prometheus.NewRegistry(), events.NewFakeRecorder(100)
	reporter := &report.OrphanReporter{Recorder: recorder, Metrics: report.NewMetrics(registry), Scheme: schemeOf(t),
		Exists: func(string) bool { return true }}
	owner := scope.Owner{Group: operatorv1.GroupVersion.Group, Kind: "NamespaceScope", Namespace: "ops", Name: "s"}
	key := facts.ProjectedKey{Kind: projected.Role, Name: "r"}
	p := &plan.Plan{
		Key: scope.NamespaceScopes.In("ops"), Orphans: []plan.Change{{Action: plan.Delete, Namespace: "a", Key: key}},
	}

	for i, want := range []string{"still grant", "", "grant nothing", ""} {
		content := &facts.Content{Owner: owner.String(), ScopeHash: owner.Hash(), Empty: i > 1}
		in := map[facts.ProjectedKey]*facts.Projected{key: {Content: content}}
		reporter.ReportLeft(p, &facts.Facts{Projected: map[string]map[facts.ProjectedKey]*facts.Projected{"a": in}})

		if count := gauge(t, registry, "ambit_orphaned_objects"); (count == 1) == content.Empty {
			t.Errorf("in pass %d, the metric counts %g", i, count)
		}

		if got := len(recorder.Events); (got == 0) != (want == "") {
			t.Errorf("pass %d sent %d events", i, got)
		}

		for len(recorder.Events) > 0 {
			if said := <-recorder.Events; !strings.Contains(said, want) {
				t.Errorf("pass %d said %s, want %q", i, said, want)
			}
		}
	}
}
