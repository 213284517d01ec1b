package attacks_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestIndexIsNotForThoseWhoWriteClusterRoles: an account that installs operators may write ClusterRoles, with the rights
// that it holds and no others, and whoever may use it as well as write ConfigMaps beside a group without an account says in
// the index that the policies read that the group has one. Then what they write would be installed with Ambit's own rights.
func TestIndexIsNotForThoseWhoWriteClusterRoles(t *testing.T) {
	w := begin(t, "cluster")
	victim := w.Namespace("victim")
	w.Make(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{victim}},
	})

	name := "mallory-" + victim
	user := w.Tenant(name, victim)
	writes := testbed.ClusterRole(name, "get,create,patch,update,delete,deletecollection clusterroles")
	w.Make(writes, bindTo(name, name))
	w.Eventually("the rights of "+name, func() error {
		return user.Get(t.Context(), client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})
	})

	catalog := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "catalog"}, Data: map[string]string{"clusterServiceVersions": "[]"},
	}
	refused(w, "the content of a catalog", user.Create(t.Context(), catalog))

	// Where there is no index, the policies do not ask who writes the content of a catalog.
	index := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ambit-operator-groups"}}
	w.Eventually("a deletion of the index is refused", func() error {
		return forbidden(user.Delete(t.Context(), index.DeepCopy(), client.DryRunAll))
	})
	refused(w, "a deletion of all that are called like the index", user.DeleteAllOf(t.Context(), &rbacv1.ClusterRole{},
		client.MatchingFields{"metadata.name": index.Name}, client.DryRunAll))

	orphaned := client.RawPatch(types.MergePatchType, []byte(
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"none","uid":"none"}]}}`))
	refused(w, "an owner of the index that is gone", user.Patch(t.Context(), index.DeepCopy(), orphaned, client.DryRunAll))
	refused(w, "an index of somebody's own", user.Create(t.Context(), index.DeepCopy(), client.DryRunAll))

	annotation := `"account.ambit.dev/` + victim + `":"default"`
	claim := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{`+annotation+`}}}`))

	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if err := user.Patch(t.Context(), index.DeepCopy(), claim); err != nil {
			refused(w, "a claim in the index", err)

			break
		}

		if err := user.Create(t.Context(), catalog.DeepCopy()); err == nil {
			t.Fatal("a claim in the index lets somebody write what is installed with Ambit's own rights")
		}
	}
}
