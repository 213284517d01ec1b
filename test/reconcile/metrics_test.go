package reconcile_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// measured are the values of a metric for the scopes of a namespace, by their label.
func (w *world) measured(namespace, name string) map[string]float64 {
	w.Helper()

	all, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}

	out := map[string]float64{}

	for _, family := range all {
		if family.GetName() != name {
			continue
		}

		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}

			if labels["namespace"] == namespace {
				out[labels["scope"]] = m.GetGauge().GetValue()
			}
		}
	}

	return out
}

// TestMetricsOfScopes: each scope has its own, also two of one name in both groups, and only as long as it is there.
func TestMetricsOfScopes(t *testing.T) {
	t.Parallel()

	const failed = "ambit_scope_failed_members"

	w := begin(t)
	w.common()

	nss := w.scopeCalled("x", `{"namespaceMembers":["a>","missing"]}`)
	w.Make(&namespacescopev1alpha1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "x"},
		Spec:       namespacescopev1alpha1.NamespaceScopeSpec{NamespaceMembers: []string{w.ns("a")}, ConfigmapName: "mine"},
	})
	w.settle()
	is(w, failed, w.measured(w.ns(ops), failed), map[string]float64{"x": 1, "namespacescope.ibm.com/x": 0})

	w.Change(nss, func() { nss.Finalizers = nil })
	w.Remove(nss)
	w.settle()
	is(w, failed, w.measured(w.ns(ops), failed), map[string]float64{"namespacescope.ibm.com/x": 0})
}

// TestMetricsCountEachFailedMember: a status names the first of many members that failed, a metric counts all of them.
func TestMetricsCountEachFailedMember(t *testing.T) {
	t.Parallel()

	const failed = "ambit_scope_failed_members"

	w := begin(t)
	w.common()

	var missing []string
	for i := range 60 {
		missing = append(missing, fmt.Sprintf("missing-%02d", i))
	}

	list, _ := json.Marshal(missing)
	w.scopeCalled("x", `{"namespaceMembers":`+string(list)+`}`)
	w.settle()
	is(w, failed, w.measured(w.ns(ops), failed), map[string]float64{"x": 60})
}

// TestMetricsTellOfAScopeThatIsNotReady: no member of it fails, and who looks at the metrics learns of it, too.
func TestMetricsTellOfAScopeThatIsNotReady(t *testing.T) {
	t.Parallel()

	const failed, unready = "ambit_scope_failed_members", "ambit_scope_unready"

	w := begin(t)
	w.common()

	nss := w.scopeCalled("x", `{"namespaceSelector":{"plain":"label","matchLabels":{"another":"form"}}}`)
	w.settle()
	is(w, failed, w.measured(w.ns(ops), failed), map[string]float64{"x": 0})
	is(w, unready, w.measured(w.ns(ops), unready), map[string]float64{"x": 1})

	w.Change(nss, func() { nss.Spec.NamespaceSelector = nil })
	w.settle()
	is(w, unready+" once it is corrected", w.measured(w.ns(ops), unready), map[string]float64{"x": 0})
}

// TestMetricsCountTheWholeClusterAsAMember: who looks at the metric learns of a refused ClusterRoleBinding, too.
func TestMetricsCountTheWholeClusterAsAMember(t *testing.T) {
	const failed = "ambit_scope_failed_members"

	w := templated(t)
	w.refuses = func(what string) int {
		if strings.HasPrefix(what, "create clusterrolebindings") {
			return http.StatusForbidden
		}

		return 0
	}

	w.template(`{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}],
		"subjects":[{"kind":"User","name":"jane"}]}]}`)
	w.instance("i", `{"scopeTemplateName":"t>"}`)
	w.reconcileTemplates()
	is(w, failed, w.measured(scope.Cluster, failed)[w.ns("i")], 1)

	w.refuses = nil
	w.reconcileTemplates()
	is(w, "Scoped", w.scoped("i", "Scoped"), "True ScopingSuccessful")
	is(w, failed+" once it is bound", w.measured(scope.Cluster, failed)[w.ns("i")], 0)
}

// TestMetricsCountMembersOfATemplateThatFails: nothing is wrong with any of the namespaces, and none is served.
func TestMetricsCountMembersOfATemplateThatFails(t *testing.T) {
	const failed = "ambit_scope_failed_members"

	w := templated(t)
	w.instance("i", `{"scopeTemplateName":"t>","namespaces":["a>","b>"]}`)
	w.reconcileTemplates()
	is(w, "Scoped", w.scoped("i", "Scoped"), "False ScopeTemplateNotFound")
	is(w, failed, w.measured(scope.Cluster, failed)[w.ns("i")], 2)

	w.makes(&operatorsv1alpha1.ScopeTemplate{}, "u", `{"clusterRoles":[{"generateName":"r-","rules":[],
		"subjects":[{"kind":"ServiceAccount","name":"nowhere"}]}]}`)
	w.instance("j", `{"scopeTemplateName":"u>","namespaces":["a>","b>"]}`)
	w.reconcileTemplates()
	is(w, "Scoped", w.scoped("j", "Scoped"), "False ScopingFailed")
	is(w, failed, w.measured(scope.Cluster, failed)[w.ns("j")], 2)

	w.template(`{"clusterRoles":[{"generateName":"r-","rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}],
		"subjects":[{"kind":"User","name":"jane"}]}]}`)
	w.reconcileTemplates()
	is(w, "Scoped", w.scoped("i", "Scoped"), "True ScopingSuccessful")
	is(w, failed+" once they are bound", w.measured(scope.Cluster, failed)[w.ns("i")], 0)
}
