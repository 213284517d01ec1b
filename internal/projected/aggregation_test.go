package projected_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestAggregationRoundTrip holds that a ClusterRole which takes its rules from others is read back as it was written, whatever
// rules the API server filled in.
func TestAggregationRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,9}/[a-z]{1,9}`), 0, 4, rapid.ID[string]).Draw(t, "labels")
		slices.Sort(labels)

		o := projected.Object{
			Kind: projected.ClusterRole, Name: "n", ScopeHash: "h", Owner: "OperatorGroup/ops/group", Source: "OperatorGroup/ops/group",
			Aggregates: labels,
		}

		live, ok := o.In("").(*rbacv1.ClusterRole)
		if !ok || (live.AggregationRule == nil) != (len(labels) == 0) {
			t.Fatalf("written is %v", live)
		}

		if len(labels) > 0 {
			live.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
		}

		back, ok := projected.From(live)
		if !ok || !slices.Equal(back.Aggregates, labels) || back.Aggregated {
			t.Fatalf("read back is %+v", back)
		}

		if back.Digest(scope.ManagedBy) != o.Digest(scope.ManagedBy) {
			t.Fatal("what was written counts as a difference")
		}
	})
}

// TestAggregationOfOthers: an aggregation that Ambit never writes is seen, so that it is put right.
func TestAggregationOfOthers(t *testing.T) {
	t.Parallel()

	selector := func(labels ...string) metav1.LabelSelector {
		s := metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, l := range labels {
			s.MatchLabels[l] = "true"
		}

		return s
	}
	wanted := projected.Object{Kind: projected.ClusterRole, Name: "n", Aggregates: []string{"a", "b"}}
	plain := projected.Object{Kind: projected.ClusterRole, Name: "n"}

	for reason, rule := range map[string]*rbacv1.AggregationRule{
		"none":              nil,
		"nothing in it":     {},
		"one less":          {ClusterRoleSelectors: []metav1.LabelSelector{selector("a")}},
		"one more":          {ClusterRoleSelectors: []metav1.LabelSelector{selector("a"), selector("b"), selector("c")}},
		"both in one":       {ClusterRoleSelectors: []metav1.LabelSelector{selector("a", "b")}},
		"a selector of all": {ClusterRoleSelectors: []metav1.LabelSelector{selector("a"), {}}},
		"another value": {ClusterRoleSelectors: []metav1.LabelSelector{
			selector("a"), {MatchLabels: map[string]string{"b": "false"}},
		}},
		"an expression besides": {ClusterRoleSelectors: []metav1.LabelSelector{selector("a"), {
			MatchLabels:      map[string]string{"b": "true"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}},
		}}},
	} {
		back, _ := projected.From(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "n"}, AggregationRule: rule})

		if back.Digest("") == wanted.Digest("") {
			t.Errorf("%s: not told from the one that is wanted", reason)
		}

		if rule != nil && back.Digest("") == plain.Digest("") {
			t.Errorf("%s: not told from one with rules of its own", reason)
		}
	}
}
