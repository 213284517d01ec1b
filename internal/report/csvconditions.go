package report

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// CSVConditions are the conditions of a ClusterServiceVersion besides its phases; s is nil where nothing is planned for it.
func CSVConditions(s *plan.ScopePlan) []metav1.Condition {
	if s == nil {
		return nil
	}

	var out []metav1.Condition

	for _, c := range []*metav1.Condition{clusterWide(s), rulesEffective(s)} {
		if c != nil {
			c.Message = shortened(printable.Text(c.Message), maxMessage)
			out = append(out, *c)
		}
	}

	return out
}

func isBesides(c olm.ClusterServiceVersionCondition) bool {
	return c.Phase == ConditionClusterWide || c.Phase == ConditionRulesEffective
}

// setBesides puts conditions before the history of phases, of which the last is what OLM goes by. What OLM calls the phase of a
// condition is its type.
func setBesides(status *olm.ClusterServiceVersionStatus, conditions []metav1.Condition,
	before []olm.ClusterServiceVersionCondition,
	now metav1.Time,
) {
	all := make([]olm.ClusterServiceVersionCondition, 0, len(conditions)+len(status.Conditions))

	for i := range conditions {
		one := olm.ClusterServiceVersionCondition{
			Phase:  olm.ClusterServiceVersionPhase(conditions[i].Type),
			Reason: olm.ConditionReason(conditions[i].Reason), Message: conditions[i].Message,
			LastUpdateTime: &now, LastTransitionTime: &now,
		}

		at := slices.IndexFunc(before, func(c olm.ClusterServiceVersionCondition) bool { return c.Phase == one.Phase })
		if at >= 0 {
			one.LastTransitionTime = before[at].LastTransitionTime

			if before[at].Reason == one.Reason && before[at].Message == one.Message {
				one = before[at]
			}
		}

		all = append(all, one)
	}

	status.Conditions = append(all, status.Conditions...)
}

// TypeConditions gives a type and a status to those of a ClusterServiceVersion's conditions that are not phases, as all other
// kinds have them: OLM's Go types know neither, and kubectl wait knows nothing else.
func TypeConditions(csv *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(csv.Object, "status", "conditions")

	for _, c := range conditions {
		one, is := c.(map[string]any)
		if !is {
			continue
		}

		switch one["phase"] {
		case ConditionClusterWide:
			one["type"], one["status"] = ConditionClusterWide, string(metav1.ConditionTrue)
			if one["reason"] != ReasonBoundInCluster {
				one["status"] = string(metav1.ConditionUnknown)
			}
		case ConditionRulesEffective:
			one["type"], one["status"] = ConditionRulesEffective, string(metav1.ConditionFalse)
		}
	}

	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(csv.Object, conditions, "status", "conditions") // It was read from there.
	}
}
