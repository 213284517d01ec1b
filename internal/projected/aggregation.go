package projected

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregateTo is the value of every label by which rules are aggregated.
const aggregateTo = "true"

// AggregationRule says from which other ClusterRoles a ClusterRole takes its rules; nil when it has its own.
func (o *Object) AggregationRule() *rbacv1.AggregationRule {
	if len(o.Aggregates) == 0 {
		return nil
	}

	rule := &rbacv1.AggregationRule{}
	for _, label := range o.Aggregates {
		rule.ClusterRoleSelectors = append(rule.ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: map[string]string{label: aggregateTo}})
	}

	return rule
}

// aggregatesOf reads back what AggregationRule wrote. other says that the rule is none that it writes.
func aggregatesOf(rule *rbacv1.AggregationRule) (labels []string, other bool) {
	if rule == nil {
		return nil, false
	}

	for i := range rule.ClusterRoleSelectors {
		s := &rule.ClusterRoleSelectors[i]
		keys := slices.Collect(maps.Keys(s.MatchLabels))

		if len(keys) != 1 || s.MatchLabels[keys[0]] != aggregateTo || len(s.MatchExpressions) > 0 {
			return nil, true
		}

		labels = append(labels, keys[0])
	}

	return labels, len(labels) == 0
}
