package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestWhoMayWriteCatalogs: where Ambit installs with its own rights, being allowed to edit a namespace is not enough to change
// what is installed.
func TestWhoMayWriteCatalogs(t *testing.T) {
	w := begin(t, "cluster")
	w.own("")

	cm := w.offer(w.namespace, w.content(three()[0]))
	user := "editor-of-" + w.namespace

	bind := func(name, role string) {
		w.Make(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	bind("edit", "edit")

	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}

	as, err := client.New(config, client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}

	change := func(key, value string, options ...client.UpdateOption) error {
		live := &corev1.ConfigMap{}
		if err := as.Get(t.Context(), client.ObjectKeyFromObject(cm), live); err != nil {
			return err
		}

		live.Data[key] = value

		return as.Update(t.Context(), live, options...)
	}

	// Before that it is RBAC that refuses.
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}}
	w.Eventually("the user may edit", func() error { return as.Create(t.Context(), other.DeepCopy(), client.DryRunAll) })

	for _, key := range []string{"clusterServiceVersions", "packages", "customResourceDefinitions", "another"} {
		w.Eventually("the policy holds for "+key, func() error {
			return guarded(change(key, "changed", client.DryRunAll))
		})

		if err := guarded(change(key, "changed")); err != nil {
			t.Errorf("changing the key %s of a catalog: %v", key, err)
		}
	}

	if err := as.Create(t.Context(), other); err != nil {
		t.Errorf("a ConfigMap that is no catalog: %v", err)
	}

	other.Data = map[string]string{"clusterServiceVersions": ""}
	if err := guarded(as.Update(t.Context(), other)); err != nil {
		t.Errorf("making a ConfigMap a catalog: %v", err)
	}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"operators.coreos.com"}, Resources: []string{"catalogsources"}, Verbs: []string{"create"},
		}},
	}
	w.Make(role)
	bind("catalogs", role.Name)
	w.Eventually("who may write catalogs may write what Ambit does not read", func() error { return change("another", "changed") })

	for _, key := range []string{"clusterServiceVersions", "packages", "customResourceDefinitions"} {
		if err := guarded(change(key, "changed")); err != nil {
			t.Errorf("being allowed to write catalogs is no right of Ambit's: changing the key %s: %v", key, err)
		}
	}
}

// TestConfigMapsAloneInstallNothing: in the profile delegated, whoever may write ConfigMaps, and not use the group's account,
// gets nothing installed as it: neither by the catalog of an automatic Subscription nor by a ConfigMap that becomes one later.
func TestConfigMapsAloneInstallNothing(t *testing.T) {
	w := begin(t, "delegated")
	w.account("installer")
	w.grant("installer", definitions())
	w.own("installer")

	cm := w.offer(w.namespace, w.content(three()[0]))
	s := w.subscribe()
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	mallory, owner := w.writer("mallory"), w.writer("owner", testbed.Rule("impersonate serviceaccounts/installer"))
	bad := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: w.content(three()[:2]...),
		}
	}
	offer := func(as client.Client, options ...client.UpdateOption) error {
		return as.Update(t.Context(), bad(cm.Namespace, cm.Name), options...)
	}

	w.Eventually("the account's user may write the catalog", func() error { return offer(owner, client.DryRunAll) })

	patch := bad(cm.Namespace, cm.Name)
	patch.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}

	for what, err := range map[string]error{
		"update": offer(mallory),
		"patch":  mallory.Patch(t.Context(), bad(cm.Namespace, cm.Name), client.MergeFrom(cm.DeepCopy())),
		//nolint:staticcheck // An object is what the tests of this package have.
		"apply": mallory.Patch(t.Context(), patch, client.Apply, client.FieldOwner("mallory"), client.ForceOwnership),
		"plant": mallory.Create(t.Context(), bad(w.namespace, "planted")),
	} {
		if err := guardedBy(err, "ambit-delegate-identity-catalogs"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	// RBAC lets them take the catalog away, and that is all that comes of it.
	if err := mallory.Delete(t.Context(), cm.DeepCopy()); err != nil {
		t.Fatal(err)
	}

	if err := guardedBy(mallory.Create(t.Context(), bad(cm.Namespace, cm.Name)), "ambit-delegate-identity-catalogs"); err != nil {
		t.Errorf("replace: %v", err)
	}

	w.says(s, olm.SubscriptionCatalogSourcesUnhealthy, olm.UnhealthyCatalogSourceFound, "is not in namespace")
	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v1")

	if err := owner.Create(t.Context(), bad(cm.Namespace, cm.Name)); err != nil {
		t.Fatal(err)
	}

	w.state(s, olm.SubscriptionStateAtLatest, "kettle.v2")
}

// TestCatalogsForAllNamespaces: a group in Ambit's own namespace names an account, and whoever may use that one alone does not
// write there what is installed as others.
func TestCatalogsForAllNamespaces(t *testing.T) {
	for _, profile := range []string{"delegated", "cluster"} {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			w.namespace = embedded.Namespace
			weak := "weak-" + rand.String(6)
			w.Make(testbed.Account(w.namespace, weak), &operatorsv1.OperatorGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: weak},
				Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{w.namespace}, ServiceAccountName: weak},
			})

			// In another namespace, so that it is known that Ambit writes down what groups name.
			mallory := w.writer("mallory-"+weak, testbed.Rule("impersonate serviceaccounts/"+weak),
				rbacv1.PolicyRule{
					APIGroups: []string{"operators.coreos.com"}, Resources: []string{"catalogsources"}, Verbs: []string{"*"},
				})
			there := &world{World: w.World, namespace: w.Namespace("there")}
			there.account("installer")
			there.own("installer")

			w.Eventually("the index is written", func() error {
				index := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ambit-operator-groups"}}
				if err := w.get(index); err != nil {
					return err
				}

				if index.Annotations["account.ambit.dev/"+there.namespace] != "installer" {
					return fmt.Errorf("it is %v", index.Annotations)
				}

				return nil
			})

			cm := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: weak}, Data: map[string]string{"clusterServiceVersions": ""},
			}
			source := &olm.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: weak},
				Spec:       olm.CatalogSourceSpec{SourceType: olm.SourceTypeConfigmap, ConfigMap: "some"},
			}

			if err := guardedBy(mallory.Create(t.Context(), cm), "-identity-catalogs"); err != nil {
				t.Errorf("the content of a catalog: %v", err)
			}

			if err := guardedBy(mallory.Create(t.Context(), source), "-identity-operators"); err != nil {
				t.Errorf("a catalog: %v", err)
			}
		})
	}
}

// writer is a user who may write the ConfigMaps of the namespace, and what the rules say besides.
func (w *world) writer(name string, rules ...rbacv1.PolicyRule) client.Client {
	w.Helper()

	name += "-of-" + w.namespace
	binding := testbed.Bind(w.namespace, "Role", name, w.namespace, name)
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	w.Make(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Rules: append(rules, testbed.Rule("* configmaps")),
	}, binding)

	as := w.As(name)
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "note-of-" + name}}

	w.Eventually(name+" may write ConfigMaps", func() error { return as.Create(w.Context(), note.DeepCopy(), client.DryRunAll) })

	return as
}

var errAllowed = errors.New("it was allowed")

// guarded complains of a write that the policy about catalogs did not refuse.
func guarded(err error) error { return guardedBy(err, "ambit-own-identity-catalogs") }

// guardedBy complains of a write that no policy refused whose name ends so.
func guardedBy(err error, policy string) error {
	if err == nil {
		return errAllowed
	}

	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policy+"' with binding") {
		return fmt.Errorf("refused by something else: %w", err)
	}

	return nil
}
