package profiles_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// usesTemplates lets Ambit do with a template and an instance whatever it may do with such, where it serves them; elsewhere it
// only says that it does not.
func usesTemplates(t *testing.T, bed *testbed.Bed, served bool) {
	t.Helper()

	template := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "profiles"}}
	template.Spec.ClusterRoles = []operatorsv1alpha1.ClusterRoleTemplate{{
		GenerateName: "profiles-", Rules: []rbacv1.PolicyRule{testbed.Rule("get pods")},
		Subjects: []operatorsv1alpha1.Subject{{Kind: rbacv1.UserKind, Name: "somebody"}},
	}}
	in := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "profiles"}, Spec: operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: "profiles"},
	}

	for _, obj := range []client.Object{template, in} {
		if err := bed.Client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}

	get := func(obj client.Object) bool {
		return bed.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj) == nil
	}

	within(t, "both have a status", func() bool {
		return get(template) && get(in) && len(template.Status.Conditions) > 0 && len(in.Status.Conditions) > 0
	})

	if served {
		writesTemplates(t, bed, template)
	}

	for _, obj := range []client.Object{in, template} {
		if err := bed.Client.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}

	within(t, "nothing is left", func() bool {
		roles, bindings := projectedBy(t, bed)

		return len(roles)+len(bindings) == 0
	})
}

// writesTemplates has a ClusterRole and its binding made, changed, and taken back after they lost their marks.
func writesTemplates(t *testing.T, bed *testbed.Bed, template *operatorsv1alpha1.ScopeTemplate) {
	t.Helper()

	within(t, "a ClusterRole and its binding", func() bool {
		roles, bindings := projectedBy(t, bed)

		return len(roles) == 1 && len(bindings) == 1
	})

	patch := []byte(`[{"op":"add","path":"/spec/clusterRoles/0/rules/0/verbs/-","value":"list"},
		{"op":"replace","path":"/spec/clusterRoles/0/subjects/0/name","value":"somebody-else"}]`)
	if err := bed.Client.Patch(t.Context(), template, client.RawPatch("application/json-patch+json", patch)); err != nil {
		t.Fatal(err)
	}

	within(t, "a changed rule, and a changed subject", func() bool {
		roles, bindings := projectedBy(t, bed)

		return len(roles) == 1 && len(roles[0].Rules[0].Verbs) == 2 && len(bindings) == 1 && len(bindings[0].Subjects) == 1 &&
			bindings[0].Subjects[0].Name == "somebody-else"
	})

	roles, bindings := projectedBy(t, bed)
	for _, obj := range []client.Object{&roles[0], &bindings[0]} {
		stripped := []byte(`{"metadata":{"labels":null,"annotations":null,"ownerReferences":null}}`)
		if err := bed.Client.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", stripped)); err != nil &&
			!apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}

	within(t, "the marks are back", func() bool {
		roles, bindings := projectedBy(t, bed)

		return len(roles) == 1 && len(bindings) == 1
	})
}

func projectedBy(t *testing.T, bed *testbed.Bed) ([]rbacv1.ClusterRole, []rbacv1.ClusterRoleBinding) {
	t.Helper()

	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings} {
		if err := bed.Client.List(t.Context(), list, client.HasLabels{"ambit.dev/scope"}); err != nil {
			t.Fatal(err)
		}
	}

	return roles.Items, bindings.Items
}
