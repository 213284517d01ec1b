package operatorgroups_test

import (
	"fmt"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestTenantsInstallWhereAGroupNamesAnAccount: the guard follows the groups of a namespace, in each profile that has one.
func TestTenantsInstallWhereAGroupNamesAnAccount(t *testing.T) {
	for _, profile := range []string{"cluster", "delegated"} {
		t.Run(profile, func(t *testing.T) {
			w := beds.Begin(t, profile)
			ops := w.Namespace("scoped")
			w.Make(testbed.Account(ops, "writer"), testbed.Account(ops, "tenant"), &rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "tenant"},
				Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{operatorsv1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
					testbed.Rule("impersonate serviceaccounts/writer"),
				},
			}, testbed.Bind(ops, "Role", "tenant", ops, "tenant"))

			refused := func() error { return refusedBy(subscribe(w, ops), "-identity-operators") }
			w.Eventually("without a group a tenant installs nothing", refused)

			group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "group"}}
			group.Spec = operatorsv1.OperatorGroupSpec{ServiceAccountName: "writer", TargetNamespaces: []string{ops}}
			w.Make(group)
			w.Eventually("with one that names their account they do", func() error { return subscribe(w, ops) })

			index := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ambit-operator-groups"}}
			stray := "account.ambit.dev/" + w.Namespace("stray")
			w.Change(index, func() {
				index.Annotations["account.ambit.dev/"+ops] = "other"
				index.Annotations[stray] = "writer"
			})
			w.Eventually("what somebody else writes down is put right", func() error {
				if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(index), index); err != nil {
					return err
				}

				if _, there := index.Annotations[stray]; there || index.Annotations["account.ambit.dev/"+ops] != "writer" {
					return fmt.Errorf("the index is %v", index.Annotations)
				}

				return nil
			})

			second := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "second"}}
			w.Make(second)
			w.Eventually("with one that names none they do not", refused)
			w.Remove(second)
			w.Eventually("when that is gone they do", func() error { return subscribe(w, ops) })
			w.Change(group, func() { group.Finalizers = []string{"example.com/kept"} })

			if err := w.Client.Delete(w.Context(), group); err != nil {
				t.Fatal(err)
			}

			w.Eventually("with one that a finalizer keeps they do not", refused)
			w.Change(group, func() { group.Finalizers = nil })
			w.Eventually("without a group they do not", refused)
		})
	}
}

// subscribe asks the API server, as a tenant of a namespace, whether a subscription may be made.
func subscribe(w *testbed.World, ops string) error {
	w.Helper()

	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + ops + ":tenant"

	c, err := client.New(config, client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		w.Fatal(err)
	}

	return c.Create(w.Context(), &olmv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "etcd"},
		Spec:       &olmv1alpha1.SubscriptionSpec{Package: "etcd", CatalogSource: "catalog"},
	}, client.DryRunAll)
}

func refusedBy(err error, policy string) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policy) {
		return fmt.Errorf("want it refused by %s, got: %w", policy, err)
	}

	return nil
}
