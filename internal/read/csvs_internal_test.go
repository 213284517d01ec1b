package read

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// csvWith is a ClusterServiceVersion of one deployment, whose arguments take about so many bytes, and that names packages.
func csvWith(name string, bytes, packages int) *unstructured.Unstructured {
	csv := scope.NewOLM(scope.KindCSV)
	csv.SetNamespace("ops")
	csv.SetName(name)
	csv.SetResourceVersion("1")
	csv.SetAnnotations(map[string]string{managedOperators: strings.Repeat("p,", packages)})

	csv.Object["spec"] = map[string]any{"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
		"deployments": []any{map[string]any{"name": "d", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "args": []any{strings.Repeat("a", bytes)}}},
		}}}}},
	}}}

	return csv
}

// TestCSVsBesideAScopeAreBounded: who may write ClusterServiceVersions beside a scope that injects into those decides how large
// they are, and how many packages they name. The largest are left out, and counted for as long as they are watched.
func TestCSVsBesideAScopeAreBounded(t *testing.T) {
	t.Parallel()

	h := newOperatorNamespace(func() {})
	s := NewStore(&ear{})
	h.bounded = func() {}

	k := h.csvs().sink(t.Context(), &h.records)
	k.lock, k.done = &s.mu, func() {}

	objs := []any{csvWith("small", 10, 1), csvWith("names", 10, 120_000)}
	for i := range 9 {
		objs = append(objs, csvWith(fmt.Sprintf("large-%d", i), 1<<20, 1))
	}

	must(t, k.Replace(objs, "9"))

	f := h.facts()
	if n := len(f.CSVs); n != 6 || f.CSVs[n-1].Name != "small" || f.LeftOut != "5 ClusterServiceVersions" {
		t.Errorf("%d are kept, and left out are %s", n, f.LeftOut)
	}

	if h.forgetCSVs(); len(h.facts().CSVs) > 0 || h.facts().LeftOut != "" {
		t.Errorf("once they are not watched any more, left out are %s", h.facts().LeftOut)
	}
}
