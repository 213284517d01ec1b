package consent_test

import (
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ambit-k8s/ambit/internal/plan"
)

type planned = plan.ScopePlan

func equal(a, b rbacv1.Role) bool {
	return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Rules, b.Rules)
}

func equalBinding(a, b rbacv1.RoleBinding) bool {
	return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		a.RoleRef == b.RoleRef && equality.Semantic.DeepEqual(a.Subjects, b.Subjects)
}
