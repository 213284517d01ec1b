package group_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// csvOf is a ClusterServiceVersion with so many bytes that have to be kept.
func csvOf(number, bytes int, phase string) *unstructured.Unstructured {
	csv := scope.NewOLM(scope.KindCSV)
	csv.SetNamespace("evil")
	csv.SetName(fmt.Sprintf("csv-%03d", number))
	csv.SetUID(types.UID(csv.GetName()))
	csv.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(number), 0)))
	csv.Object["spec"] = map[string]any{
		"description": strings.Repeat("d", 1000), "install": map[string]any{"strategy": strings.Repeat("x", bytes)},
	}
	csv.Object["status"] = map[string]any{"phase": phase}

	return csv
}

func kept(t *testing.T, r *group.Quota, csv *unstructured.Unstructured) bool {
	t.Helper()

	out, err := r.Transform(csv)
	if err != nil || out != csv {
		t.Fatal(out, err)
	}

	return install.LeftOut(csv) == ""
}

// Of more than there is room for, what comes first is kept; what was left out fits once something went.
func TestRoomForClusterServiceVersions(t *testing.T) {
	t.Parallel()

	r := group.NewQuota()

	const size = install.MaxCSVBytes / 4

	var out []*unstructured.Unstructured

	for i := range 6 {
		csv := csvOf(i, size, "")
		if is := kept(t, r, csv); is != (i < 3) {
			t.Errorf("%s is kept: %t", csv.GetName(), is)
		}

		if i >= 3 {
			out = append(out, csv)
		}
	}

	if got := r.Fitting("evil", out); len(got) > 0 {
		t.Errorf("there is room for %v", got)
	}

	r.Gone("evil", "csv-000")
	r.Gone("evil", "csv-000")

	if got := r.Fitting("evil", out); len(got) != 1 {
		t.Errorf("there is room for %v, want the oldest that was left out", got)
	} else if _, oldest := got["csv-003"]; !oldest {
		t.Errorf("there is room for %v, want the oldest that was left out", got)
	}

	if !kept(t, r, csvOf(3, size, "Pending")) || kept(t, r, csvOf(4, size, "Pending")) {
		t.Error("want the one that fits now, and not the other")
	}

	if other := csvOf(9, size, ""); !kept(t, r, func() *unstructured.Unstructured { other.SetNamespace("other"); return other }()) {
		t.Error("another namespace has no room for what this one holds")
	}
}

// A manager that begins anew may be told of everything else first: what runs has room all the same.
func TestWhatRunsHasRoom(t *testing.T) {
	t.Parallel()

	r := group.NewQuota()

	for i := range install.MaxCSVs + 50 {
		kept(t, r, csvOf(i, install.MaxCSVBytes/100, "Failed"))
	}

	for i := range 50 {
		if !kept(t, r, csvOf(1000+i, install.MaxCSVBytes/100, "Succeeded")) {
			t.Fatalf("of what runs, %d are kept", i)
		}
	}
}

// What is left out is small, says why, and still says whose permissions are for the whole cluster.
func TestWhatIsLeftOutIsSmall(t *testing.T) {
	t.Parallel()

	r := group.NewQuota()
	csv := csvOf(1, install.MaxCSVBytes, "Succeeded")
	csv.SetAnnotations(map[string]string{"a": strings.Repeat("x", 100_000)})
	csv.Object["status"].(map[string]any)["message"] = strings.Repeat("x", 100_000)

	permissions := []any{map[string]any{"serviceAccountName": "op", "rules": []any{map[string]any{"verbs": []any{"*"}}}}}
	if err := unstructured.SetNestedSlice(csv.Object, permissions, "spec", "install", "spec", "clusterPermissions"); err != nil {
		t.Fatal(err)
	}

	if kept(t, r, csv) || !strings.Contains(install.LeftOut(csv), "limit") {
		t.Fatalf("it is kept: %q", install.LeftOut(csv))
	}

	text, err := csv.MarshalJSON()
	if err != nil || len(text) > 1000 || !strings.Contains(string(text), `"serviceAccountName":"op"`) {
		t.Errorf("%d bytes are left (%v): %.2000s", len(text), err, text)
	}

	if again := csv.DeepCopy(); kept(t, r, again) {
		t.Error("what was left out counts as small when it comes by again")
	}
}

// TestPermissionsTakeRoom: three short lists stand for more rights than can be compared, and such permissions are left out,
// whatever they take in memory. What a list repeats counts once.
func TestPermissionsTakeRoom(t *testing.T) {
	t.Parallel()

	r := group.NewQuota()

	with := func(number int, word string) *unstructured.Unstructured {
		list := func(n int) []any {
			out := make([]any, n)
			for i := range out {
				out[i] = strings.ReplaceAll(word, "?", strconv.Itoa(i))
			}

			return out
		}

		csv := csvOf(number, 100, "")
		csv.Object["spec"] = map[string]any{"install": map[string]any{"spec": map[string]any{"permissions": []any{map[string]any{
			"serviceAccountName": "op",
			"rules":              []any{map[string]any{"apiGroups": list(60), "resources": list(60), "verbs": list(300)}},
		}}}}}

		return csv
	}

	if !kept(t, r, with(1, "same")) {
		t.Error("what is repeated counts each time")
	}

	if csv := with(2, "w?"); kept(t, r, csv) || !strings.Contains(install.LeftOut(csv), strconv.Itoa(install.MaxRights)) {
		t.Errorf("a million rights are kept: %q", install.LeftOut(csv))
	}
}

// Copies by OLM take no room.
func TestCopiesByOLMTakeNoRoom(t *testing.T) {
	t.Parallel()

	r := group.NewQuota()

	for i := range install.MaxCSVs + 1 {
		csv := csvOf(i, 1000, "Succeeded")
		csv.SetLabels(map[string]string{"olm.copiedFrom": "elsewhere"})

		if kept(t, r, csv) || !install.IsCopy(csv) {
			t.Fatal("a copy is kept whole")
		}
	}

	if !kept(t, r, csvOf(1000, 1000, "")) {
		t.Error("there is no room beside copies")
	}
}
