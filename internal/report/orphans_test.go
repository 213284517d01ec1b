package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/report"
)

// TestOrphansOf: what is left of a ClusterServiceVersion is told, except for what garbage collection is about to delete.
func TestOrphansOf(t *testing.T) {
	t.Parallel()

	owner := compile.CSVOwner("ops", "op.v1")

	for name, tc := range map[string]struct {
		namespace, owners, reason string
		told                      bool
	}{
		"in a target":             {"a", "", "nobody owns it", true},
		"in a target, authorized": {"a", "uid", "its owner is an authorization, which is there still", true},
		"beside it":               {"ops", "uid", "the ClusterServiceVersion owned it", false},
		"beside it, without one":  {"ops", "", "whoever deleted the ClusterServiceVersion asked for its dependents to stay", true},
		"in the cluster":          {"", "", "nobody owns it", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			key := facts.ProjectedKey{Kind: projected.RoleBinding, Name: "copy"}
			f := &facts.Facts{Projected: map[string]map[facts.ProjectedKey]*facts.Projected{tc.namespace: {key: {
				Content: &facts.Content{ScopeHash: owner.Hash(), Owner: owner.String(), Owners: tc.owners},
			}}}}

			var want []string
			if tc.told {
				want = []string{tc.namespace}
			}

			var got []string
			for _, of := range report.OrphansOf([]plan.Change{{Namespace: tc.namespace, Key: key}}, f) {
				got = append(got, of.Namespaces...)
			}

			if !slices.Equal(got, want) {
				t.Errorf("told of %q, want %q: %s", got, want, tc.reason)
			}
		})
	}
}

// TestOrphansSayWhetherTheyGrant: nobody need look for rights by what was emptied, and by one that was not there are some.
func TestOrphansSayWhetherTheyGrant(t *testing.T) {
	t.Parallel()

	owner := compile.CSVOwner("ops", "op.v1")
	content := facts.Content{ScopeHash: owner.Hash(), Owner: owner.String()}
	emptied := content
	emptied.Empty = true

	for name, tc := range map[string]struct {
		contents []*facts.Content
		grant    bool
	}{
		"all grant":   {[]*facts.Content{&content, &content}, true},
		"one grants":  {[]*facts.Content{&emptied, &content}, true},
		"none grants": {[]*facts.Content{&emptied, &emptied}, false},
	} {
		in := map[facts.ProjectedKey]*facts.Projected{}
		changes := make([]plan.Change, 0, len(tc.contents))

		for i, of := range tc.contents {
			key := facts.ProjectedKey{Kind: projected.RoleBinding, Name: strings.Repeat("x", i+1)}
			in[key] = &facts.Projected{Content: of}
			changes = append(changes, plan.Change{Namespace: "a", Key: key})
		}

		left := report.OrphansOf(changes, &facts.Facts{Projected: map[string]map[facts.ProjectedKey]*facts.Projected{"a": in}})
		if got := left[0].Message(); strings.Contains(got, "still grant") != tc.grant || !strings.Contains(got, "2 roles and") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestOrphansSayHowToDeleteThem holds that the command deletes all that is left, wherever that is.
func TestOrphansSayHowToDeleteThem(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		namespaces []string
		want       []string
	}{
		"in one namespace": {[]string{"a"}, []string{" in a still", "kubectl delete rolebindings,roles -n a -l ambit.dev/scope=h"}},
		"in several, which one command covers": {
			[]string{"a", "b"}, []string{" in a, b still", "kubectl delete rolebindings,roles -A -l ambit.dev/scope=h"},
		},
		"what has no namespace": {
			[]string{""},
			[]string{" in the whole cluster still", "kubectl delete clusterrolebindings,clusterroles -l ambit.dev/scope=h"},
		},
		"both": {
			[]string{"", "a"},
			[]string{
				" in the whole cluster, a still", "kubectl delete clusterrolebindings,clusterroles -l ambit.dev/scope=h",
				"kubectl delete rolebindings,roles -n a -l ambit.dev/scope=h",
			},
		},
	} {
		o := report.Orphans{Owner: compile.CSVOwner("ops", "op.v1"), Hash: "h", Namespaces: tc.namespaces}
		for _, words := range tc.want {
			if got := o.Message(); !strings.Contains(got, words) {
				t.Errorf("%s: %q is not in %q", reason, words, got)
			}
		}
	}
}
