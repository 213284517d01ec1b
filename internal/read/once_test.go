package read_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestOnceForgetsWhatNoLongerCounts: a later version of an object takes the place of one that counted, also if it does not.
func TestOnceForgetsWhatNoLongerCounts(t *testing.T) {
	t.Parallel()

	once := read.NewOnce([]string{"ops"})
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "b", ResourceVersion: "1"},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "r"},
	}

	count := func() int {
		f, _ := once.Store.Facts(scope.NamespaceScopes.In("ops"), time.Now())

		return len(f.OperatorNamespace.Bindings)
	}

	if once.Add(b); count() != 1 {
		t.Fatalf("there are %d bindings", count())
	}

	later := b.DeepCopy()
	later.ResourceVersion = "2"
	later.Annotations = map[string]string{scope.AnnotationProject: scope.ProjectDisabled}

	if once.Add(later); count() != 0 {
		t.Error("it is still taken for one that is projected")
	}

	if once.Add(b); count() != 0 {
		t.Error("an older version came back")
	}
}
