package group

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// TestUserRoleThatIsLeftOut: of a ClusterRole that takes too much memory it is not known what it says. It stays as it is, and the
// group says so.
func TestUserRoleThatIsLeftOut(t *testing.T) {
	t.Parallel()

	want := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "things-v1-view"}}
	p := &state{Reconciler: &Reconciler{}, facts: &facts.Facts{ClusterRoles: map[string]facts.ClusterRole{
		want.Name: {Made: true, Aggregated: &rbacv1.ClusterRole{}},
	}}}

	if _, role := p.apiRole(want); role != nil {
		t.Errorf("it is written: %+v", role)
	}

	if words := p.userRolesProblem(); !strings.Contains(words, "ClusterRole things-v1-view is not compared with what it should be") {
		t.Errorf("the group says %q", words)
	}
}
