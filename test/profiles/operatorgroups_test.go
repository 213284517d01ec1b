package profiles_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// usesOperatorGroups has Ambit write down the account of an OperatorGroup for the guard.
func usesOperatorGroups(t *testing.T, bed *testbed.Bed) {
	t.Helper()

	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "older-server", Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{ServiceAccountName: "writer", TargetNamespaces: []string{"older-server"}},
	}
	if err := bed.Client.Create(t.Context(), group); err != nil {
		t.Fatal(err)
	}

	index := &rbacv1.ClusterRole{}
	account := func() string {
		if err := bed.Client.Get(t.Context(), client.ObjectKey{Name: "ambit-operator-groups"}, index); err != nil {
			t.Fatal(err)
		}

		return index.Annotations["account.ambit.dev/older-server"]
	}

	within(t, "the account is written down", func() bool { return account() == "writer" })

	if err := bed.Client.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}

	within(t, "the account is forgotten", func() bool { return account() == "" })
}
