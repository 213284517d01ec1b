package catalog_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

	change := func(key, value string) error {
		live := &corev1.ConfigMap{}
		if err := as.Get(t.Context(), client.ObjectKeyFromObject(cm), live); err != nil {
			return err
		}

		live.Data[key] = value

		return as.Update(t.Context(), live)
	}

	for _, key := range []string{"clusterServiceVersions", "packages", "customResourceDefinitions", "another"} {
		w.Eventually("the policy holds for "+key, func() error {
			if err := change(key, "changed"); !apierrors.IsForbidden(err) {
				return err
			}

			return nil
		})

		if err := change(key, "changed"); !apierrors.IsForbidden(err) {
			t.Errorf("the key %s of a catalog was changed: %v", key, err)
		}
	}

	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}}
	if err := as.Create(t.Context(), other); err != nil {
		t.Errorf("a ConfigMap that is no catalog: %v", err)
	}

	other.Data = map[string]string{"clusterServiceVersions": ""}
	if err := as.Update(t.Context(), other); !apierrors.IsForbidden(err) {
		t.Errorf("a ConfigMap became a catalog: %v", err)
	}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"operators.coreos.com"}, Resources: []string{"catalogsources"}, Verbs: []string{"create"},
		}},
	}
	w.Make(role)
	bind("catalogs", role.Name)
	w.Eventually("who may write catalogs may write their content", func() error { return change("another", "changed") })
}
