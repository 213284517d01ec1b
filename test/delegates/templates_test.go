package delegates_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestDelegatedServesNoTemplates: what has no namespace names no delegate, so nobody could write it. That is told.
func TestDelegatedServesNoTemplates(t *testing.T) {
	w := begin(t, "delegated")
	ns := w.Namespace("member")
	template := &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
			GenerateName: ns + "-", Rules: []rbacv1.PolicyRule{testbed.Rule("get secrets")},
			Subjects: []operatorsv1alpha1.Subject{{Kind: "User", Name: "jane"}},
		}}},
	}
	in := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: ns, Namespaces: []string{ns}},
	}
	w.Make(template, in)

	for _, obj := range []client.Object{template, in} {
		w.Eventually(fmt.Sprintf("%T says why", obj), func() error {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}

			c := meta.FindStatusCondition(template.Status.Conditions, "Templated")
			if obj == client.Object(in) {
				c = meta.FindStatusCondition(in.Status.Conditions, "Scoped")
			}

			if c == nil || c.Status != no || !strings.Contains(c.Message, "install the profile cluster") {
				return fmt.Errorf("%+v", c)
			}

			return nil
		})
	}

	if len(template.Status.ClusterRoles) != 0 || in.Status.BoundNamespaces != 0 {
		t.Errorf("status of the template %+v, of the instance %+v", template.Status, in.Status)
	}
}
