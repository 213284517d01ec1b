package catalog_test

import (
	"errors"
	"fmt"
	"strings"
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
	w.Eventually("who may write catalogs may write their content", func() error { return change("another", "changed") })
}

var errAllowed = errors.New("it was allowed")

// guarded complains of a write that the policy about catalogs did not refuse.
func guarded(err error) error {
	if err == nil {
		return errAllowed
	}

	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'ambit-own-identity-catalogs'") {
		return fmt.Errorf("refused by something else: %w", err)
	}

	return nil
}
