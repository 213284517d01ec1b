package reconcile_test

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestKeyOfNames: the key is made once and kept, with the rights of the Role ambit-names where the Secret is installed without
// one, and otherwise with that to create it.
func TestKeyOfNames(t *testing.T) {
	t.Parallel()

	for name, installed := range map[string]bool{"the Secret is installed empty": true, "there is none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops")

			role := testbed.Role(w.ns(ops), controllers.NamesSecret)
			role.Rules = []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{controllers.NamesSecret},
				Verbs: []string{"get", "update"},
			}}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: controllers.NamesSecret}}

			if installed {
				w.Make(secret)
			} else {
				role.Rules = append(role.Rules, testbed.Rule("create secrets"))
			}

			w.Make(testbed.Account(w.ns(ops), "ambit"), role, testbed.Bind(w.ns(ops), "Role", role.Name, w.ns(ops), "ambit"))

			as := rest.CopyConfig(apiServer)
			as.Impersonate.UserName = scope.AccountUser(w.ns(ops), "ambit")

			var first []byte

			for range 2 {
				if _, err := controllers.LoadNames(t.Context(), as, w.ns(ops)); err != nil {
					t.Fatal(err)
				}

				if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
					t.Fatal(err)
				}

				if key := secret.Data["key"]; first == nil {
					first = key
				} else if !bytes.Equal(key, first) {
					t.Error("the key is another one")
				}
			}

			if len(first) == 0 {
				t.Error("there is no key")
			}
		})
	}
}
