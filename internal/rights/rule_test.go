package rights_test

import (
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/rights"
)

func TestGivenBy(t *testing.T) {
	own := []rbacv1.PolicyRule{rights.To(rbacv1.Resource("roles"), "a", "get")}

	for _, tc := range []struct {
		reason    string
		aggregate *rbacv1.AggregationRule
		want      []rbacv1.PolicyRule
	}{
		{reason: "a ClusterRole with rules of its own gives these", want: own},
		{
			reason:    "the API server takes an aggregation rule that selects nothing for none",
			aggregate: &rbacv1.AggregationRule{}, want: own,
		},
		{
			reason:    "what a ClusterRole gathers may be anything",
			aggregate: &rbacv1.AggregationRule{ClusterRoleSelectors: make([]metav1.LabelSelector, 1)}, want: rights.Everything(),
		},
	} {
		if got := rights.GivenBy(&rbacv1.ClusterRole{Rules: own, AggregationRule: tc.aggregate}); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}
